"""Encodes PIL images within a budget.

Runs in the user's kernel, on the thread of the call. PIL is never imported here: if there is an
image, PIL is loaded.
"""

import io
import math
from collections.abc import Iterator
from typing import Any

from mcp_notebook.content import Image
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.image_block import Unshowable
from mcp_notebook.kernel.results.blocks.piece import Piece

MAX_TRIES = 8
"""Attempts to scale a picture down until its bytes fit. Each leaves at most a third of the excess,
so this is plenty."""
_QUALITIES = (85, 60)
"""Qualities of JPEG and WebP at which text is legible."""
_PNG_MODES = frozenset({"1", "L", "LA", "I;16", "P", "RGB", "RGBA"})
_WIDE_MODES = frozenset({"I", "F", "I;16", "I;16L", "I;16B", "I;16N"})
_TRANSPARENT_MODES = frozenset({"RGBA", "LA", "PA", "La", "RGBa"})
_BRIGHTEST = 255
_DARKEST = 64
"""If all values are below this, of 255, the picture looks black."""
_DIM = 0.25
"""The same for values from 0 to 1."""
_COARSE = 2
"""Palettes and bitmaps are first reduced to this many times the final size, without mixing colours:
converted to colours at full size they would take four to 32 times the memory."""


def encode_image(
    image: Any,
    budget: Budget,
    mime_type: str = "image/png",
    *,
    original_size: tuple[int, int] | None = None,
) -> Piece:
    """Encode an image within the budget, scaled down if necessary.

    It becomes a PNG if that fits, since it keeps lines and letters sharp; otherwise a JPEG, or a
    WebP if it has transparent parts.

    Args:
        image: A PIL image.
        budget: Limits its sides and bytes.
        mime_type: The preferred format: for ``image/jpeg`` and ``image/webp`` no PNG is tried.
        original_size: The size of the picture, if the image is a smaller copy.

    Raises:
        Unshowable: It has no pixels, or does not fit.
    """
    width, height = image.size
    if min(width, height) < 1:
        raise Unshowable(f"A picture of {width}x{height} pixels is empty.")
    image_8bit, notes = _reduce_depth(image)
    factor = min(1.0, budget.picture_side / max(width, height))
    for _ in range(MAX_TRIES):
        size = (max(1, round(width * factor)), max(1, round(height * factor)))
        fewest = 0
        for data, encoded_type in _try_encodings(
            convert_for_png(_resize(image_8bit, size)), mime_type
        ):
            if len(data) <= budget.picture_bytes:
                notes = (*notes, *_describe_scaling(original_size or image.size, size))
                return Piece(Image(data, encoded_type), notes=notes)
            fewest = min(fewest or len(data), len(data))
        factor *= max(0.1, 0.9 * math.sqrt(budget.picture_bytes / fewest))
    raise Unshowable(
        f"A picture of {width}x{height} pixels does not fit into {budget.picture_bytes:,} bytes."
    )


def convert_for_png(image: Any) -> Any:
    """Return an image in a mode that PNG supports."""
    if image.mode in _PNG_MODES:
        return image
    return (
        _reduce_depth(image)[0]
        if image.mode in _WIDE_MODES
        else image.convert(_choose_color_mode(image))
    )


def _reduce_depth(image: Any) -> tuple[Any, tuple[str, ...]]:
    """Scale an image of more than 8 bits to 8 bits."""
    if image.mode not in _WIDE_MODES:
        return image, ()
    image = image.convert("F")
    lowest, highest = image.getextrema()
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        raise Unshowable(
            "The picture contains NaN or infinite values: replace them, for example with "
            "numpy.nan_to_num."
        )
    is_as_bytes = lowest >= 0 and (_DARKEST <= highest <= _BRIGHTEST or highest == 0)
    if is_as_bytes:
        return image.convert("L"), ()
    if lowest >= 0 and _DIM < highest <= 1:
        lowest, highest = 0.0, 1.0
    # PIL and most viewers show values above 255 as white, and those up to 1 as black.
    scale = _BRIGHTEST / ((highest - lowest) or 1.0)
    grey = image.point(lambda value: value * scale - lowest * scale).convert("L")
    return grey, (_describe_range(lowest, highest),)


def _describe_range(lowest: float, highest: float) -> str:
    return f"Values from {lowest:g} to {highest:g} are shown as black to white."


def _describe_scaling(before: tuple[int, int], after: tuple[int, int]) -> tuple[str, ...]:
    if before == after:
        return ()
    sizes = f"from {before[0]}x{before[1]} to {after[0]}x{after[1]} pixels"
    return (f"The picture was scaled down {sizes}.",)


def _choose_color_mode(image: Any) -> str:
    if image.mode == "La":
        return "LA"  # the only one that PIL converts it to
    transparent = image.mode in _TRANSPARENT_MODES or "transparency" in image.info
    return "RGBA" if transparent else "L" if image.mode in {"L", "1"} else "RGB"


def _resize(image: Any, size: tuple[int, int]) -> Any:
    if size == image.size:
        return image
    if image.mode in {"1", "P", "PA"}:
        coarse = (size[0] * _COARSE, size[1] * _COARSE)
        if coarse[0] < image.width and coarse[1] < image.height:
            image = image.resize(coarse, 0)
    image = image.convert(_choose_color_mode(image))
    return image.resize(size, 1, reducing_gap=3.0)  # 1 is Lanczos


def _try_encodings(image: Any, mime_type: str) -> Iterator[tuple[bytes, str]]:
    if mime_type not in {"image/jpeg", "image/webp"}:
        yield _save(image, "PNG"), "image/png"
    transparent = _is_transparent(image)
    for quality in _QUALITIES:
        if transparent or mime_type == "image/webp":
            data = _save_webp(image.convert("RGBA" if transparent else "RGB"), quality)
            if data is not None:
                yield data, "image/webp"
                continue
        flat = _flatten_on_white(image) if transparent else image.convert("RGB")
        yield _save(flat, "JPEG", quality=quality), "image/jpeg"


def _is_transparent(image: Any) -> bool:
    if "transparency" in image.info:
        return True
    if image.mode not in _TRANSPARENT_MODES:
        return False
    lowest, _ = image.getchannel("A").getextrema()
    return bool(lowest < _BRIGHTEST)


def _flatten_on_white(image: Any) -> Any:
    image = image.convert("RGBA")
    white = image.copy()
    white.paste((_BRIGHTEST,) * 4, (0, 0, *image.size))
    white.alpha_composite(image)
    return white.convert("RGB")


def _save_webp(image: Any, quality: int) -> bytes | None:
    try:
        return _save(image, "WEBP", quality=quality)
    except (
        OSError,
        KeyError,
        ValueError,
    ):  # PIL without WebP support, or an image too large for it
        return None


def _save(image: Any, format_: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    # A colour profile may take a megabyte, and no longer match the converted colours.
    image.save(buffer, format=format_, icc_profile=b"", **options)
    return buffer.getvalue()
