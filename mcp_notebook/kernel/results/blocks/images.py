"""Pictures as bytes that every client can show, in a size that a model can take.

Runs in the user's kernel, on the thread of the call. Recognises encoded pictures by their first
bytes and passes on those that fit as they are; others, and PIL images, are encoded by
`kernel.results.blocks.image_encoding`. PIL is imported when a picture must be measured; without it
everything works but making pictures smaller. Figures are `kernel.results.plots.matplotlib_figures`'
business, arrays `kernel.results.blocks.arrays`'.
"""

import importlib
import io
import math
import sys
from typing import Any

from mcp_notebook.content import Image
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.image_block import (
    EXTENSIONS,
    NOT_KEPT,
    Unshowable,
    describe_encoded_original,
)
from mcp_notebook.kernel.results.blocks.image_encoding import (
    EncodedImage,
    convert_for_png,
    encode_image,
)
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.safe.magic_numbers import detect_image_type
from mcp_notebook.kernel.safe.text import describe_error

MAX_PIXELS = 64_000_000
"""Pixels of a picture that is decoded: a quarter of a gigabyte. Below PIL's own limit, which it
warns of in the user's notebook."""
MAX_FRAME_PIXELS = 16_000_000
"""Pixels of all frames of an animation that is encoded."""

_COMPRESSED = " was compressed to a "
_ENDINGS = {"image/png": b"IEND", "image/jpeg": b"\xff\xd9"}
_ORIENTATION = 0x0112
_ON_ITS_SIDE = range(5, 9)
"""EXIF's orientations that swap width and height."""
_END = 64
"""Bytes at the end of a file in which its format's ending is looked for."""
_FILES = {
    "image/png": ("PIL.PngImagePlugin", "PngImageFile"),
    "image/jpeg": ("PIL.JpegImagePlugin", "JpegImageFile"),
    "image/gif": ("PIL.GifImagePlugin", "GifImageFile"),
    "image/webp": ("PIL.WebPImagePlugin", "WebPImageFile"),
}
"""PIL's classes of files: ``PIL.Image.open`` warns of large ones before their size is known."""

_ALLOWED = (
    "Image(array) takes height x width (grey) or height x width x 3 or 4 (RGB, RGBA), "
    "of uint8, of floats from 0 to 1, or of bool"
)
_ROWS = 256
"""Rows of floats that are converted at a time: a copy of the whole would take as much again."""
_ABOUT = 1e-6
"""How far computed floats may be beyond 0 and 1."""
_CHANNELS = (3, 4)
_GREY, _COLOUR = 2, 3


def is_image(data: bytes) -> bool:
    """Tell whether bytes that nobody marked as a picture are surely one."""
    if data.startswith(b"BM"):
        return len(data) == int.from_bytes(data[2:6], "little")
    return detect_image_type(data) is not None or data.startswith((b"II*\0", b"MM\0*"))


def fit_image(data: bytes, budget: Budget) -> Piece:
    """Take an encoded picture, made smaller if it is too large.

    Raises:
        Unshowable: The bytes are no picture, or too large a one.
    """
    mime_type = detect_image_type(data)
    try:
        import PIL  # noqa: PLC0415 - only for pictures, and only if it is there
        import PIL.Image  # noqa: PLC0415
    except ImportError:
        return _unmeasured(data, mime_type, budget)
    try:
        with _opened(data, mime_type) as image:
            return _from_file(image, data, mime_type, budget)
    except Unshowable:
        raise
    except PIL.UnidentifiedImageError:
        raise Unshowable(_not_a_picture(data)) from None
    except Exception as error:  # PIL raises anything on broken files
        raise Unshowable(f"A picture cannot be read: {describe_error(error)}.") from error


def encode_pil_image(image: Any, budget: Budget, mime_type: str = "image/png") -> Piece:
    """Encode a PIL image.

    Args:
        image: It.
        budget: What it may take.
        mime_type: The format that its author wants, as `encode_image` has it.

    Raises:
        Unshowable: The picture has no pixels, or cannot be encoded.
    """
    try:
        return _animation(image, budget) or _still(image, budget, mime_type)
    except Unshowable:
        raise
    except Exception as error:  # PIL raises anything on broken or closed images
        raise Unshowable(f"A PIL image cannot be encoded: {describe_error(error)}.") from error


def shrink_image(piece: Piece, budget: Budget) -> Piece:
    """Make a picture smaller that would fit, but does not together with others.

    Args:
        piece: Holds an encoded image.
        budget: What it may take, less than it does.

    Raises:
        Unshowable: There is no room, or no Pillow.
    """
    before: Any = piece.block
    data = before.data
    original = piece.original or describe_encoded_original(data, before.mime_type)
    try:
        import PIL.Image  # noqa: F401, PLC0415 - only for pictures, and only if it is there
    except ImportError:
        return _unmeasured(data, before.mime_type, budget)
    try:
        with _opened(data, detect_image_type(data)) as image:
            size = image.size
            # Not a PNG: of these pixels it has more bytes, or it would not be here.
            made = encode_image(image, budget, "image/jpeg")
            said = tuple(note for note in piece.notes if _COMPRESSED not in note)
            notes = (*said, *_which_frame(image), *made.notes)
    except Unshowable as error:
        raise Unshowable(str(error), original) from None
    except Exception as error:  # PIL raises anything on broken files
        raise Unshowable(f"A picture cannot be read: {describe_error(error)}.", original) from error
    if not made.notes:
        notes += (_compressed(made, original.formats[0].size),)
    if original is not piece.original:
        original = describe_encoded_original(data, before.mime_type, size)
    return Piece(Image(made.data, made.mime_type), original, notes)


def _unmeasured(data: bytes, mime_type: str | None, budget: Budget) -> Piece:
    if mime_type is None:
        raise Unshowable(_not_a_picture(data))
    if len(data) > budget.picture_bytes:
        raise Unshowable(
            f"A picture of {len(data):,} bytes is too large to be shown: install Pillow "
            "(`pip install pillow`), and it is scaled down.",
            describe_encoded_original(data, mime_type),
        )
    return Piece(Image(data, mime_type))


def _opened(data: bytes, mime_type: str | None) -> Any:
    import PIL.Image  # noqa: PLC0415 - as above

    file = io.BytesIO(data)
    if mime_type is None:
        return PIL.Image.open(file)
    module, name = _FILES[mime_type]
    try:
        return getattr(importlib.import_module(module), name)(file)
    except SyntaxError as error:  # so do PIL's classes say that a file is broken
        raise ValueError(str(error)) from None


def _from_file(image: Any, data: bytes, mime_type: str | None, budget: Budget) -> Piece:
    from PIL import ImageOps  # noqa: PLC0415 - who has an image has PIL

    size = image.size
    fits = max(size) <= budget.picture_side and len(data) <= budget.picture_bytes
    if mime_type is not None and fits and min(size) > 0:
        if not _is_whole(data, mime_type):
            image.load()  # fails if the file was cut off: clients' models refuse such a picture
        return Piece(Image(data, mime_type))
    kind = mime_type or image.get_format_mimetype() or "application/octet-stream"
    if size[0] * size[1] > MAX_PIXELS:
        raise Unshowable(
            f"A picture of {size[0]}x{size[1]} pixels ({len(data):,} bytes) is too large to be "
            "shown: make it smaller in the tool.",
            describe_encoded_original(data, kind, size),
        )
    if image.getexif().get(_ORIENTATION, 1) in _ON_ITS_SIDE:  # decodes a PNG
        size = size[::-1]
    frame = _which_frame(image)
    image.draft("RGB", (2 * budget.picture_side,) * 2)  # a large JPEG is decoded smaller at once
    best = "image/jpeg" if mime_type == "image/jpeg" else "image/png"
    made = encode_image(ImageOps.exif_transpose(image), budget, best, original_size=size)
    notes = (*frame, *made.notes)
    if mime_type is not None and not made.notes:
        notes += (_compressed(made, len(data)),)
    original = describe_encoded_original(data, kind, size) if notes else None
    return Piece(Image(made.data, made.mime_type), original, notes)


def _is_whole(data: bytes, mime_type: str) -> bool:
    if mime_type == "image/webp":
        return len(data) >= int.from_bytes(data[4:8], "little") + 8
    if mime_type == "image/gif":
        return data.rstrip(b"\0").endswith(b";")
    return _ENDINGS[mime_type] in data[-_END:]


def _still(image: Any, budget: Budget, mime_type: str) -> Piece:
    made = encode_image(image, budget, mime_type)
    notes = made.notes
    if not notes and mime_type == "image/png" and made.mime_type != mime_type:
        notes = (_compressed(made),)
    original = _pixels(image) if notes else None
    if notes and original is None:
        notes += (NOT_KEPT,)
    notes = (*_which_frame(image), *notes)
    return Piece(Image(made.data, made.mime_type), original, notes)


def _animation(image: Any, budget: Budget) -> Piece | None:
    """Encode an animation that was opened from a file, if that is one that may fit."""
    frames = getattr(image, "n_frames", 1)
    form = getattr(image, "format", None)
    if frames < 2 or form not in {"GIF", "WEBP", "PNG"}:  # noqa: PLR2004 - more than one
        return None
    width, height = image.size
    if max(width, height) > budget.picture_side or width * height * frames > MAX_FRAME_PIXELS:
        return None
    frame = image.tell()
    buffer = io.BytesIO()
    try:
        image.save(buffer, format=form, save_all=True)
    finally:
        image.seek(frame)
    data = buffer.getvalue()
    fits = len(data) <= budget.picture_bytes
    return Piece(Image(data, f"image/{form.lower()}")) if fits else None


def _pixels(image: Any) -> Original | None:
    """Describe an image, to be encoded when it is read.

    As it is now: a tool may draw on the same image in its next call. Copying is a small part of
    what making it smaller has cost.
    """
    width, height = image.size
    if width * height > MAX_PIXELS:
        return None
    copy = image.copy()

    def content() -> bytes:
        buffer = io.BytesIO()
        convert_for_png(copy).save(buffer, format="PNG")
        return buffer.getvalue()

    form = FileFormat(EXTENSIONS["image/png"], "image/png", content)
    per_band = 4 if copy.mode in {"I", "F"} else 2 if copy.mode.startswith("I;16") else 1
    cost = width * height * len(copy.getbands()) * per_band
    return Original("picture", f"The original picture: {width}x{height} pixels", (form,), cost)


def _compressed(made: EncodedImage, before: int | None = None) -> str:
    what = "The picture" if before is None else f"The picture of {before:,} bytes"
    form = (
        "WebP" if made.mime_type == "image/webp" else made.mime_type.removeprefix("image/").upper()
    )
    return f"{what}{_COMPRESSED}{form} of {len(made.data):,} bytes."


def _which_frame(image: Any) -> tuple[str, ...]:
    frames = getattr(image, "n_frames", 1)
    return (f"This is frame {image.tell() + 1} of {frames:,}.",) if frames > 1 else ()


def _not_a_picture(data: bytes) -> str:
    beginning = data[:8].hex(" ")
    return (
        f"{len(data):,} bytes beginning with {beginning or 'nothing'} are no picture: "
        "give PNG, JPEG, WebP or GIF."
    )


# -- arrays that an author marked as pictures ------------------------------------------------------


def is_array(value: Any) -> bool:
    """Tell whether `convert_array` may take a value."""
    return callable(getattr(type(value), "__array__", None))


def convert_array(value: Any) -> Any:
    """Return an array as a PIL image, which may share its memory.

    Raises:
        Unshowable: It is no picture; the message says what to do.
    """
    numpy = sys.modules.get("numpy")
    try:
        import PIL.Image  # noqa: PLC0415 - only for pictures, and only if it is there
    except ImportError:
        raise Unshowable(
            "An array is shown as a picture only where Pillow is installed: `pip install pillow`."
        ) from None
    if numpy is None:
        raise Unshowable(f"{_ALLOWED}, but not a {type(value).__name__}.")
    try:
        array = numpy.asarray(value)
    except Exception as error:  # a tensor on a GPU, or one that has gradients
        raise Unshowable(
            f"Image(array) cannot read a {type(value).__name__}: {describe_error(error)}."
        ) from error
    if array.ndim == _COLOUR and array.shape[2] == 1:
        array = array[:, :, 0]
    _check_shape(array)
    if not array.size:
        raise Unshowable("An array without elements is no picture.")
    return PIL.Image.fromarray(_bytes(array, numpy))


def _check_shape(array: Any) -> None:
    if array.ndim == _GREY or (array.ndim == _COLOUR and array.shape[2] in _CHANNELS):
        return
    shape = " x ".join(map(str, array.shape)) or "a single number"
    text = f"{_ALLOWED}, but this array is {shape}."
    if array.ndim == _COLOUR and array.shape[0] in (1, *_CHANNELS):
        text += " Move the colours to the end: numpy.moveaxis(array, 0, -1)."
    raise Unshowable(text)


def _bytes(array: Any, numpy: Any) -> Any:
    if array.dtype == numpy.uint8:
        return numpy.ascontiguousarray(array)
    if array.dtype == numpy.bool_:
        return array.astype(numpy.uint8) * numpy.uint8(255)
    if array.dtype.kind != "f":
        raise Unshowable(
            f"{_ALLOWED}, but this array is of {array.dtype}: scale its values to 0 to 255 and "
            "take array.astype('uint8')."
        )
    made = numpy.empty(array.shape, numpy.uint8)
    for start in range(0, len(array), _ROWS):
        rows = array[start : start + _ROWS]
        lowest, highest = float(rows.min()), float(rows.max())
        if not (math.isfinite(lowest) and math.isfinite(highest)):
            raise Unshowable(
                "An array with NaN or infinite values is no picture: replace them, with "
                "numpy.nan_to_num(array) say."
            )
        if lowest < -_ABOUT or highest > 1 + _ABOUT:
            raise Unshowable(
                f"{_ALLOWED}, but this array has floats from {lowest:g} to {highest:g}: scale it, "
                "with (array - array.min()) / (array.max() - array.min()) say."
            )
        made[start : start + _ROWS] = numpy.clip(rows, 0, 1) * 255 + 0.5
    return made
