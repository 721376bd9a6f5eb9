"""Sends what certain code prints to stdout and stderr elsewhere.

Runs in the user's kernel, on the thread that prints. IPython sets ``sys.stdout.write`` at the start
of each cell and puts back the old one at its end; a patch made the same way in between is lost. So
each stream gets its own class, whose ``write`` is a data descriptor that cannot be pushed aside.
A ``write`` that is set on the stream gets everything that nobody takes.
"""

from collections.abc import Callable
from typing import Any

_OWN_WRITE = "_mcp_notebook_write"
"""Attribute of a routed stream: the ``write`` that somebody set on it."""


def route_stream(stream: Any, taker: Callable[[], Callable[[str], object] | None]) -> bool:
    """Have a stream ask who takes a text before it writes it.

    Args:
        stream: Any stream that is written in Python; others stay as they are.
        taker: Returns what takes the prints of the caller; None: nothing does.

    Returns:
        Whether that was done: not if it is routed already.
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
        own_write = vars(stream).pop(_OWN_WRITE, None)
        stream.__class__ = type(stream).__mro__[1]
        if own_write is not None:
            stream.write = own_write


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
        return _BoundWrite(vars(stream).get(_OWN_WRITE), method, self._taker)

    def __set__(self, stream: Any, value: Any) -> None:
        # IPython reads `write` at the start of a cell and sets that again at its end: it stands for
        # what was set on the stream when it was read.
        vars(stream)[_OWN_WRITE] = value.own_write if isinstance(value, _BoundWrite) else value

    def __delete__(self, stream: Any) -> None:
        vars(stream).pop(_OWN_WRITE, None)


class _BoundWrite:
    """The value of ``stream.write`` when it is read."""

    __slots__ = ("_taker", "_write", "own_write")

    def __init__(
        self, own_write: Any, method: Any, taker: Callable[[], Callable[[str], object] | None]
    ) -> None:
        self.own_write = own_write
        self._write = method if own_write is None else own_write
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
