"""Turns encoded images, PIL images and arrays into images that clients and models accept.

Runs in the user's kernel, on the thread of the call. An encoded image that fits is passed on as it
is; others are scaled down by `image_encoding`. PIL is imported when an image must be measured;
without it everything works except scaling. numpy is never imported: if there is an array, numpy
is loaded.
"""

import importlib
import io
from typing import Any

from msgspec import structs

from mcp_notebook.content import Image
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.image_block import (
    EXTENSIONS,
    NOT_KEPT,
    Unshowable,
    describe_encoded_original,
)
from mcp_notebook.kernel.results.blocks.image_encoding import (
    convert_for_png,
    encode_image,
)
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.kernel.safe.magic_numbers import detect_image_type
from mcp_notebook.kernel.safe.text import describe_error

MAX_PIXELS = 64_000_000
"""Pixels of the largest picture that is decoded: a quarter of a gigabyte, and below the limit at
which PIL warns in the user's notebook."""

_COMPRESSED = "The picture was compressed."
_ORIENTATION = 0x0112
_ROTATED = range(5, 9)
"""The orientations of EXIF that swap width and height."""
_PIL_FILE_CLASSES = {
    "image/png": ("PIL.PngImagePlugin", "PngImageFile"),
    "image/jpeg": ("PIL.JpegImagePlugin", "JpegImageFile"),
    "image/gif": ("PIL.GifImagePlugin", "GifImageFile"),
    "image/webp": ("PIL.WebPImagePlugin", "WebPImageFile"),
}
"""PIL's classes for these files; ``PIL.Image.open`` would warn of large images first."""

_ARRAY_RULES = (
    "Image(array) takes height x width (grey) or height x width x 3 or 4 (RGB, RGBA), "
    "of uint8, of floats from 0 to 1, or of bool"
)
_TOLERANCE = 1e-6
"""Rounding error by which floats may exceed 0 and 1."""
_CHANNELS = (3, 4)
_GREY, _COLOUR = 2, 3


def is_image(data: bytes) -> bool:
    """Return whether bytes without a declared type are certainly an encoded image."""
    if data.startswith(b"BM"):
        return len(data) == int.from_bytes(data[2:6], "little")
    return detect_image_type(data) is not None or data.startswith((b"II*\0", b"MM\0*"))


def fit_image(data: bytes, budget: Budget, preferred: str | None = None) -> Piece:
    """Fit an encoded image into the budget: as it is, or scaled down.

    Raises:
        Unshowable: The bytes are not an image, or it is too large.
    """
    mime_type = detect_image_type(data)
    try:
        import PIL  # noqa: PLC0415 - only for pictures, and only if it is there
        import PIL.Image  # noqa: PLC0415
    except ImportError:
        return _pass_unmeasured(data, mime_type, budget)
    try:
        with _open(data, mime_type) as image:
            return _fit_file(image, data, mime_type, budget, preferred)
    except Unshowable:
        raise
    except PIL.UnidentifiedImageError:
        raise Unshowable(_explain_unknown_format(data)) from None
    except Exception as error:  # PIL raises anything on broken files
        raise Unshowable(f"The picture cannot be read: {describe_error(error)}.") from error


def encode_pil_image(image: Any, budget: Budget, mime_type: str = "image/png") -> Piece:
    """Encode a PIL image.

    Args:
        image: The image.
        budget: The limits of the image.
        mime_type: The author's preferred format; see `encode_image`.

    Raises:
        Unshowable: The image has no pixels, or cannot be encoded.
    """
    try:
        return _encode_still(image, budget, mime_type)
    except Unshowable:
        raise
    except Exception as error:  # PIL raises anything on broken or closed images
        raise Unshowable(f"The PIL image cannot be encoded: {describe_error(error)}.") from error


def shrink_image(piece: Piece, budget: Budget) -> Piece:
    """Scale down an image that fits alone but not together with others.

    Args:
        piece: Holds an encoded image.
        budget: A limit below its present size.

    Raises:
        Unshowable: It does not fit, or Pillow is not installed.
    """
    block: Any = piece.block
    try:
        # A PNG would take more bytes for these pixels.
        made = fit_image(block.data, budget, "image/jpeg")
    except Unshowable as error:
        original = error.original or describe_encoded_original(block.data, block.mime_type)
        raise Unshowable(str(error), piece.original or original) from None
    earlier = (note for note in piece.notes if note != _COMPRESSED)
    return structs.replace(
        made, original=piece.original or made.original, notes=(*earlier, *made.notes)
    )


def _pass_unmeasured(data: bytes, mime_type: str | None, budget: Budget) -> Piece:
    if mime_type is None:
        raise Unshowable(_explain_unknown_format(data))
    if len(data) > budget.picture_bytes:
        raise Unshowable(
            f"A picture of {len(data):,} bytes is too large to be shown: install Pillow "
            "(`pip install pillow`) to scale it down.",
            describe_encoded_original(data, mime_type),
        )
    return Piece(Image(data, mime_type))


def _open(data: bytes, mime_type: str | None) -> Any:
    import PIL.Image  # noqa: PLC0415 - as above

    file = io.BytesIO(data)
    if mime_type is None:
        return PIL.Image.open(file)
    module, name = _PIL_FILE_CLASSES[mime_type]
    try:
        return getattr(importlib.import_module(module), name)(file)
    except SyntaxError as error:  # raised by PIL's classes for a broken file
        raise ValueError(str(error)) from None


def _fit_file(
    image: Any, data: bytes, mime_type: str | None, budget: Budget, preferred: str | None
) -> Piece:
    from PIL import ImageOps  # noqa: PLC0415 - who has an image has PIL

    size = image.size
    fits = max(size) <= budget.picture_side and len(data) <= budget.picture_bytes
    if mime_type is not None and fits and min(size) > 0:
        image.load()  # fails for an incomplete file, which models refuse
        return Piece(Image(data, mime_type))
    original_type = mime_type or image.get_format_mimetype() or "application/octet-stream"
    if size[0] * size[1] > MAX_PIXELS:
        raise Unshowable(
            f"A picture of {size[0]}x{size[1]} pixels ({len(data):,} bytes) is too large to be "
            "shown: make it smaller in the tool.",
            describe_encoded_original(data, original_type, size),
        )
    if image.getexif().get(_ORIENTATION, 1) in _ROTATED:  # this decodes a PNG
        size = size[::-1]
    frame = _describe_frame(image)
    image.draft("RGB", (2 * budget.picture_side,) * 2)  # decodes a large JPEG at a smaller size
    preferred = preferred or ("image/jpeg" if mime_type == "image/jpeg" else "image/png")
    encoded = encode_image(ImageOps.exif_transpose(image), budget, preferred, original_size=size)
    notes = (*frame, *encoded.notes)
    if mime_type is not None and not encoded.notes:
        notes += (_COMPRESSED,)
    original = describe_encoded_original(data, original_type, size) if notes else None
    return structs.replace(encoded, original=original, notes=notes)


def _encode_still(image: Any, budget: Budget, mime_type: str) -> Piece:
    encoded = encode_image(image, budget, mime_type)
    block: Any = encoded.block
    notes = encoded.notes
    if not notes and mime_type == "image/png" and block.mime_type != mime_type:
        notes = (_COMPRESSED,)
    original = _describe_pixels(image) if notes else None
    if notes and original is None:
        notes += (NOT_KEPT,)
    notes = (*_describe_frame(image), *notes)
    return structs.replace(encoded, original=original, notes=notes)


def _describe_pixels(image: Any) -> Original | None:
    """Describe the original of an image; it is encoded when a client reads it.

    It is copied, since the next call may draw on the same image; copying is much faster than
    scaling.
    """
    width, height = image.size
    if width * height > MAX_PIXELS:
        return None
    copy = image.copy()

    def encode() -> bytes:
        buffer = io.BytesIO()
        convert_for_png(copy).save(buffer, format="PNG")
        return buffer.getvalue()

    file_format = FileFormat(EXTENSIONS["image/png"], "image/png", encode)
    band_bytes = 4 if copy.mode in {"I", "F"} else 2 if copy.mode.startswith("I;16") else 1
    cost = width * height * len(copy.getbands()) * band_bytes
    return Original(
        "picture", f"The original picture: {width}x{height} pixels", (file_format,), cost
    )


def _describe_frame(image: Any) -> tuple[str, ...]:
    frames = getattr(image, "n_frames", 1)
    return (f"This is frame {image.tell() + 1} of {frames:,}.",) if frames > 1 else ()


def _explain_unknown_format(data: bytes) -> str:
    beginning = data[:8].hex(" ")
    return (
        f"{len(data):,} bytes beginning with {beginning or 'nothing'} are not a picture: "
        "give PNG, JPEG, WebP or GIF."
    )


# -- arrays ------------------------------------------------------


def is_array(value: Any) -> bool:
    """Return whether `convert_array` may accept a value."""
    return callable(getattr(type(value), "__array__", None))


def convert_array(value: Any) -> Any:
    """Convert the array of ``Image(array)`` to a PIL image, which may share its memory.

    Raises:
        Unshowable: The array is not an image; the message says what to do.
    """
    numpy = find_imported("numpy")
    try:
        import PIL.Image  # noqa: PLC0415 - only for pictures, and only if it is there
    except ImportError:
        raise Unshowable(
            "Showing an array as a picture needs Pillow: `pip install pillow`."
        ) from None
    if numpy is None:
        raise Unshowable(f"{_ARRAY_RULES}, not an object of type {type(value).__name__}.")
    try:
        array = numpy.asarray(value)
    except Exception as error:  # a tensor on a GPU, or one that has gradients
        raise Unshowable(
            f"Image(array) cannot read an object of type {type(value).__name__}: "
            f"{describe_error(error)}."
        ) from error
    if array.ndim == _COLOUR and array.shape[2] == 1:
        array = array[:, :, 0]
    pixels = _to_uint8(array, numpy)
    if pixels is None:
        raise Unshowable(f"{_ARRAY_RULES}, but this array {_describe(array)}.")
    return PIL.Image.fromarray(pixels)


def _to_uint8(array: Any, numpy: Any) -> Any:
    """Return the pixels of an array; None if it is not an image."""
    is_grey = array.ndim == _GREY
    if not array.size or not (is_grey or (array.ndim == _COLOUR and array.shape[2] in _CHANNELS)):
        return None
    if array.dtype == numpy.uint8:
        return numpy.ascontiguousarray(array)
    if array.dtype == numpy.bool_:
        return array.astype(numpy.uint8) * numpy.uint8(255)
    is_light = (
        array.dtype.kind == "f" and -_TOLERANCE <= array.min() <= array.max() <= 1 + _TOLERANCE
    )
    return (numpy.clip(array, 0, 1) * 255 + 0.5).astype(numpy.uint8) if is_light else None


def _describe(array: Any) -> str:
    shape = " x ".join(map(str, array.shape)) or "a single number"
    is_float = array.size and array.dtype.kind == "f"
    ends = f" from {array.min():g} to {array.max():g}" if is_float else ""
    return f"is {shape}, of {array.dtype}{ends}"
