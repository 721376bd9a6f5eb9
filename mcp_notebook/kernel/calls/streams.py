"""stdout and stderr, sending elsewhere what certain code prints.

Runs in the user's kernel. IPython sets ``sys.stdout.write`` at the start of each cell, and at its
end sets again what it found; whatever comes or goes in between by the same way is lost. So a stream
gets a class of its own instead, whose ``write`` is a data descriptor: it cannot be pushed aside.
What is set on the stream is where everything goes that nobody takes. Who takes what is
`kernel.calls.capture`'s business.
"""

from collections.abc import Callable
from typing import Any

_SET = "_mcp_notebook_write"
"""Attribute of a routed stream: the ``write`` that somebody set on it."""


def route_stream(stream: Any, taker: Callable[[], Callable[[str], object] | None]) -> bool:
    """Let a stream ask who takes a text before it writes it.

    Args:
        stream: Any stream that is written in Python; others stay as they are.
        taker: Returns who takes what the caller prints, None if nobody does.

    Returns:
        Whether it is routed since now.
    """
    if stream is None or _is_routed(stream):
        return False
    original = type(stream)
    members = {"write": _Write(original, taker), "__module__": original.__module__}
    try:
        stream.__class__ = type(original.__name__, (original,), members)
    except TypeError:
        return False
    if "write" in vars(stream):
        stream.write = vars(stream).pop("write")
    return True


def leave_stream(stream: Any) -> None:
    """Leave a stream as it would be had it never been routed."""
    if _is_routed(stream):
        was_set = vars(stream).pop(_SET, None)
        stream.__class__ = type(stream).__mro__[1]
        if was_set is not None:
            stream.write = was_set


def _is_routed(stream: Any) -> bool:
    return isinstance(vars(type(stream)).get("write"), _Write)


class _Write:
    """``write`` of a routed stream's class."""

    def __init__(self, original: type, taker: Callable[[], Callable[[str], object] | None]) -> None:
        self._original = original
        self._taker = taker

    def __get__(self, stream: Any, owner: type) -> Any:
        if stream is None:
            return self
        method = self._original.write.__get__(stream)  # type: ignore[attr-defined]
        return _BoundWrite(vars(stream).get(_SET), method, self._taker)

    def __set__(self, stream: Any, value: Any) -> None:
        # What was found at the start of a cell and comes back at its end stands for what was set
        # when it was found.
        vars(stream)[_SET] = value.was_set if isinstance(value, _BoundWrite) else value

    def __delete__(self, stream: Any) -> None:
        vars(stream).pop(_SET, None)


class _BoundWrite:
    """What ``stream.write`` was when somebody asked for it."""

    __slots__ = ("_taker", "_write", "was_set")

    def __init__(
        self, was_set: Any, method: Any, taker: Callable[[], Callable[[str], object] | None]
    ) -> None:
        self.was_set = was_set
        self._write = method if was_set is None else was_set
        self._taker = taker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._write, name)  # a method's name, module, docstring...

    def __call__(self, text: str, *args: Any, **kwargs: Any) -> Any:
        take = self._taker()
        if take is None:
            return self._write(text, *args, **kwargs)
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        take(text)
        return len(text)
