"""Gives the streams and the ``displayhook`` of ``sys`` to each call as if they were its own.

Runs in the user's kernel, on the threads of cells and calls. A cell may replace them for a while
(``%%capture``, ``redirect_stdout``), and so may a call, on another thread at the same time. Both
set an attribute of ``sys``. While `Streams` is open, ``sys`` therefore has a class in which these
attributes are properties: what a call sets is that call's, what a cell sets is that of the cells,
and neither sees the other's. Python's ``print`` reads the module's dict instead, which holds a
`_Redirector`. The input of a call is empty.

The kernel's own streams, which log handlers also hold, ask for the caller's receiver before they
write (`route_stream`). IPython sets ``sys.stdout.write`` at the start of each cell and restores the
old one at its end, so a patch made the same way in between would be lost. Each stream therefore
gets its own class, whose ``write`` is a data descriptor that an attribute cannot override. A
``write`` that is set on the stream still receives everything that no call takes.
"""

import io
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from mcp_notebook.kernel.calls.capture import Capture

_OUTPUTS = ("stdout", "stderr")
_NAMES = (*_OUTPUTS, "stdin", "displayhook")
_OWN_WRITE = "_mcp_notebook_write"
"""Attribute of a routed stream: the ``write`` that was set on it."""


class Streams:
    """The streams of the cells and of the calls; made and closed on the main thread.

    Args:
        get_call: Returns the capture of the call that the caller runs in; None outside of calls.
        find_writer: Returns the receiver of what the caller prints; None: the stream itself.
        displayhook: That of the calls.
    """

    def __init__(
        self,
        get_call: Callable[[], Capture | None],
        find_writer: Callable[[], Callable[[str], object] | None],
        displayhook: Any,
    ) -> None:
        self._get_call = get_call
        self._find_writer = find_writer
        self._input = _EmptyInput(Path(os.devnull).open("rb"))  # noqa: SIM115 - `close` does
        self._of_calls = {name: getattr(sys, name) for name in _OUTPUTS} | {
            "stdin": self._input,
            "displayhook": displayhook,
        }
        """What a call finds until it sets another."""
        self._routed: list[Any] = []
        self._class_before = type(sys)
        self._class = sys.__class__ = _make_class(self)
        for name in _NAMES:
            self.replace(name, vars(sys)[name])

    def route(self) -> Iterator[Any]:
        """Route the kernel's streams; yields those that were not routed yet."""
        for name in _OUTPUTS:
            # Of those at the start, if a cell had replaced them just then.
            for stream in (self._of_calls[name], self._find_of_cells(name)):
                if stream in self._routed:
                    break
                if route_stream(stream, self._find_writer):
                    self._of_calls[name] = stream
                    self._routed.append(stream)
                    yield stream
                    break

    def close(self) -> None:
        """Leave ``sys`` and its streams as the cells would have them."""
        while self._routed:
            leave_stream(self._routed.pop())
        self._input.end()
        if type(sys) is not self._class:
            return
        of_cells = {name: self._find_of_cells(name) for name in _NAMES}
        sys.__class__ = self._class_before
        vars(sys).update(of_cells)

    def find(self, name: str) -> Any:
        """Return the caller's attribute of ``sys``."""
        call = self._get_call()
        if call is None:
            return self._find_of_cells(name)
        return call.streams.get(name, self._of_calls[name])

    def replace(self, name: str, stream: Any) -> None:
        """Set the caller's attribute of ``sys``."""
        call = self._get_call()
        is_old = isinstance(stream, _Redirector)  # `unittest.mock` reads the dict
        if call is None:
            if stream is not None and not is_old:
                stream = _Redirector(stream, partial(self.find, name))
            vars(sys)[name] = stream
        elif is_old or stream is self._of_calls[name]:
            call.streams.pop(name, None)
        else:
            call.streams[name] = stream

    @staticmethod
    def _find_of_cells(name: str) -> Any:
        stream = vars(sys)[name]
        return stream.of_cells if isinstance(stream, _Redirector) else stream


def _make_class(streams: Streams) -> type[ModuleType]:
    def make_property(name: str) -> Any:
        return property(
            lambda _sys: streams.find(name), lambda _sys, stream: streams.replace(name, stream)
        )

    class Sys(ModuleType):
        """The class of ``sys``, and of no other module."""

        stdout = make_property("stdout")
        stderr = make_property("stderr")
        stdin = make_property("stdin")
        displayhook = make_property("displayhook")

        def __new__(cls, *args: Any) -> Any:
            """Return an ordinary module: importlib makes one with ``type(sys)(name)``."""
            return ModuleType(*args)

        def __reduce__(self) -> tuple[Any, ...]:
            """Let cloudpickle refer to ``sys``, which it does by name for ordinary modules."""
            return import_module, ("sys",)

    return Sys


class _Redirector:
    """The value of an attribute in the dict of ``sys``; stands for the caller's.

    Args:
        of_cells: That of the cells.
        find: Returns the caller's.
    """

    def __init__(self, of_cells: Any, find: Callable[[], Any]) -> None:
        self.of_cells = of_cells
        """That of the cells."""
        self._find = find

    def __call__(self, *args: Any) -> Any:
        return self._find()(*args)  # a ``displayhook``

    def __getattr__(self, name: str) -> Any:
        return getattr(self._find(), name)


class _EmptyInput(io.TextIOWrapper):
    """The input of all calls: none of them can close it for the others."""

    def close(self) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Close it."""
        super().close()


def route_stream(stream: Any, taker: Callable[[], Callable[[str], object] | None]) -> bool:
    """Route a stream: before it writes a text, it asks for the caller's receiver.

    A caller that has one cannot close the stream.

    Args:
        stream: Any stream written in Python; others are left alone.
        taker: Returns the receiver of what the caller prints; None: the stream itself.

    Returns:
        Whether the stream was changed; False if it is routed already.
    """
    if stream is None or _is_routed(stream):
        return False
    original = type(stream)

    def close(self: Any) -> None:
        if taker() is None:  # a call may say that it prints no more, but cells do
            original.close(self)

    write = _Write(original, taker)
    members = {"write": write, "close": close, "__module__": original.__module__}
    try:
        stream.__class__ = type(original.__name__, (original,), members)
    except TypeError:
        return False
    if "write" in vars(stream):
        stream.write = vars(stream).pop("write")
    return True


def leave_stream(stream: Any) -> None:
    """Undo `route_stream`."""
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
        # IPython reads `write` at the start of a cell and sets that value at the cell's end: the
        # bound object holds the attribute that was set when it was read.
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
