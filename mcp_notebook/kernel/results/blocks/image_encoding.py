"""PIL images as encoded pictures that keep to a budget.

Runs in the user's kernel, on the thread of the call. PIL is never imported here: who has an image
has imported it. Which picture is encoded at all is `kernel.results.blocks.images`' business.
"""

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.image_block import Unshowable

MAX_TRIES = 8
"""How often a picture is made smaller until its bytes fit; each time it has a third at most of the
bytes that were too many, so that this is plenty."""
_READABLE = (85, 60)
"""Qualities of JPEG and WebP at which letters can be read."""
_PNG_MODES = frozenset({"1", "L", "LA", "I;16", "P", "RGB", "RGBA"})
_WIDE_MODES = frozenset({"I", "F", "I;16", "I;16L", "I;16B", "I;16N"})
_TRANSPARENT_MODES = frozenset({"RGBA", "LA", "PA", "La", "RGBa"})
_BRIGHTEST = 255
_COARSE = 2
"""Palettes and bitmaps much larger than what is shown are first reduced to this many times that
without mixing colours: in colours they would take four to 32 times the memory."""


@dataclass(frozen=True)
class EncodedImage:
    """An encoded picture that fits."""

    data: bytes = field(repr=False)
    mime_type: str
    notes: tuple[str, ...] = ()
    """Sentences about what was done to it."""


def encode_image(
    image: Any,
    budget: Budget,
    mime_type: str = "image/png",
    *,
    original_size: tuple[int, int] | None = None,
) -> EncodedImage:
    """Encode an image within the budget, smaller if need be.

    A PNG where it fits, since it keeps lines and letters; else a JPEG, or a WebP where something is
    transparent.

    Args:
        image: A PIL image.
        budget: The sides and bytes that it may have.
        mime_type: What it would be best: ``image/jpeg`` and ``image/webp`` save the try of a PNG.
        original_size: Of the picture, where the image is a smaller copy of it.

    Raises:
        Unshowable: No pixels, or no room.
    """
    width, height = image.size
    if min(width, height) < 1:
        raise Unshowable(f"A picture of {width}x{height} pixels has nothing to show.")
    grey, notes = _grey(image)
    factor = min(1.0, budget.picture_side / max(width, height))
    for _ in range(MAX_TRIES):
        size = (max(1, round(width * factor)), max(1, round(height * factor)))
        fewest = 0
        for data, form in _encodings(convert_for_png(_resized(grey, size)), mime_type):
            if len(data) <= budget.picture_bytes:
                return EncodedImage(
                    data, form, (*notes, *_changed(original_size or image.size, size))
                )
            fewest = min(fewest or len(data), len(data))
        factor *= max(0.1, 0.9 * math.sqrt(budget.picture_bytes / fewest))
    raise Unshowable(
        f"A picture of {width}x{height} pixels does not fit into {budget.picture_bytes:,} bytes."
    )


def convert_for_png(image: Any) -> Any:
    """Return an image in a mode that PNG has."""
    if image.mode in _PNG_MODES:
        return image
    return _grey(image)[0] if image.mode in _WIDE_MODES else image.convert(_colours(image))


def _grey(image: Any) -> tuple[Any, tuple[str, ...]]:
    """Bring numbers of more than 8 bits into the range of those; leave other images as they are."""
    if image.mode not in _WIDE_MODES:
        return image, ()
    image = image.convert("F")
    lowest, highest = image.getextrema()
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        raise Unshowable(
            "A picture holds NaN or infinite values: replace them, with numpy.nan_to_num say."
        )
    if lowest >= 0 and highest <= _BRIGHTEST:
        return image.convert("L"), ()
    # PIL itself and most viewers show all numbers above 255 as white.
    scale = _BRIGHTEST / ((highest - lowest) or 1.0)
    grey = image.point(lambda value: value * scale - lowest * scale).convert("L")
    return grey, (f"Values from {lowest:g} to {highest:g} are shown as black to white.",)


def _changed(before: tuple[int, int], after: tuple[int, int]) -> tuple[str, ...]:
    if before == after:
        return ()
    sizes = f"from {before[0]}x{before[1]} to {after[0]}x{after[1]} pixels"
    return (f"The picture was scaled down {sizes}.",)


def _colours(image: Any) -> str:
    transparent = image.mode in _TRANSPARENT_MODES or "transparency" in image.info
    return "RGBA" if transparent else "L" if image.mode in {"L", "1"} else "RGB"


def _resized(image: Any, size: tuple[int, int]) -> Any:
    if size == image.size:
        return image
    if image.mode in {"1", "P", "PA"}:
        coarse = (size[0] * _COARSE, size[1] * _COARSE)
        if coarse[0] < image.width and coarse[1] < image.height:
            image = image.resize(coarse, 0)
    image = image.convert(_colours(image))
    return image.resize(size, 1, reducing_gap=3.0)  # 1 is Lanczos


def _encodings(image: Any, mime_type: str) -> Iterator[tuple[bytes, str]]:
    if mime_type not in {"image/jpeg", "image/webp"}:
        yield _saved(image, "PNG"), "image/png"
    transparent = _is_transparent(image)
    for quality in _READABLE:
        if transparent or mime_type == "image/webp":
            data = _webp(image.convert("RGBA" if transparent else "RGB"), quality)
            if data is not None:
                yield data, "image/webp"
                continue
        flat = _on_white(image) if transparent else image.convert("RGB")
        yield _saved(flat, "JPEG", quality=quality), "image/jpeg"


def _is_transparent(image: Any) -> bool:
    if "transparency" in image.info:
        return True
    if image.mode not in _TRANSPARENT_MODES:
        return False
    lowest, _ = image.getchannel("A").getextrema()
    return bool(lowest < _BRIGHTEST)


def _on_white(image: Any) -> Any:
    image = image.convert("RGBA")
    white = image.copy()
    white.paste((_BRIGHTEST,) * 4, (0, 0, *image.size))
    white.alpha_composite(image)
    return white.convert("RGB")


def _webp(image: Any, quality: int) -> bytes | None:
    try:
        return _saved(image, "WEBP", quality=quality)
    except (OSError, KeyError, ValueError):  # PIL was built without it, or it is larger than it has
        return None


def _saved(image: Any, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    # A colour profile may have a megabyte, and be that of colours that were converted since.
    image.save(buffer, format=form, icc_profile=b"", **options)
    return buffer.getvalue()
