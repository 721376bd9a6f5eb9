"""JSON as pydantic_core writes and reads it, by msgspec wherever the two agree.

Pure; runs in every process. pydantic_core, which takes 4.5 MB and 8 ms, is only loaded for what
msgspec refuses or would read: subclasses of numbers and texts, odd keys, circles, NaN, numbers
beyond floats, deep nesting. A bridge with ordinary messages never loads it. Of what both write,
only bytes and keys that are NaN differ, and msgspec writes some hundred levels of nesting more: no
message has any of these, since `kernel.results` turns them into texts.
"""

from typing import Any, Literal

import msgspec

_MAX_DEPTH = 200
"""Levels of nesting that pydantic_core reads."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def to_json(
    value: Any, *, inf_nan_mode: Literal["constants", "null"] = "null", **options: Any
) -> bytes:
    """Return a value as JSON.

    Args:
        value: The value.
        inf_nan_mode: How infinity and NaN are written.
        options: How pydantic_core's `to_json` writes what msgspec refuses.

    Raises:
        ValueError: It is not JSON.
    """
    try:
        text = _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        pass
    else:
        if inf_nan_mode == "null" or b"null" not in text:  # which NaN becomes
            return text
    from pydantic_core import to_json as write  # noqa: PLC0415 - seldom needed

    return write(value, inf_nan_mode=inf_nan_mode, **options)


def from_json(text: bytes | str, *, allow_inf_nan: bool = True) -> Any:
    """Return the value of a JSON text.

    Args:
        text: The text.
        allow_inf_nan: NaN and infinities are read, too.

    Raises:
        ValueError: It is not JSON, or nested too deeply, or has a number of over 4,300 digits.
    """
    text = text.encode() if isinstance(text, str) else text
    if text.count(b"[") + text.count(b"{") <= _MAX_DEPTH:
        try:
            return _decode(text)
        except (ValueError, RecursionError, msgspec.MsgspecError):
            pass
    from pydantic_core import from_json as read  # noqa: PLC0415 - seldom needed

    return read(text, allow_inf_nan=allow_inf_nan)
