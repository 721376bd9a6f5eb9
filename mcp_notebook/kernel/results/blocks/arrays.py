"""Arrays that an author marked as pictures: ``Image(array)``.

Runs in the user's kernel, on the thread of the call. numpy is never imported here: who has an array
has imported it. Tensors of other libraries are taken through ``__array__``. Encoding the image is
`kernel.results.blocks.image_encoding`'s business.
"""

import math
import sys
from typing import Any

from mcp_notebook.kernel.results.blocks.image_block import Unshowable
from mcp_notebook.kernel.safe.text import safe_message

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


def is_array(value: Any) -> bool:
    """Tell whether `image_of` may take a value."""
    return callable(getattr(type(value), "__array__", None))


def image_of(value: Any) -> Any:
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
            f"Image(array) cannot read a {type(value).__name__}: {safe_message(error)}."
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
