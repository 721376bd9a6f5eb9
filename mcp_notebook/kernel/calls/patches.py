"""Patches functions and output streams for calls only.

Runs in the user's kernel; `environment` uses it under a lock. Outside of calls, a patched function
calls the original. Replacements are created once, not for each call.

IPython sets ``sys.stdout.write`` at the start of each cell and restores the old one at its end, so
a patch made the same way in between would be lost. Each stream therefore gets its own class, whose
``write`` is a data descriptor that an attribute cannot override. A ``write`` that is set on the
stream still receives everything that no call takes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class CurrentCall(Protocol):
    """A ContextVar, say."""

    def get(self) -> Any:
        """Return the object of the call that the caller runs in; None outside of calls."""


@dataclass(frozen=True, eq=False, slots=True)
class _Patch:
    """A function and its replacement."""

    owner: Any
    name: str
    is_own: bool
    """Whether it is an attribute of its owner itself, not of the owner's class."""
    original: Any
    """The attribute as stored; a method of a class is not bound."""
    function: Callable[..., Any]
    replacement: Callable[..., Any]


class FunctionPatches:
    """Replaces functions that calls must not reach, and restores them.

    Args:
        current: Holds the first argument of the replacements; None outside of calls.
    """

    def __init__(self, current: CurrentCall) -> None:
        self._current = current
        self._patches: dict[str, _Patch] = {}
        """The latest patch of each name."""
        self._installed: list[_Patch] = []

    def install(self, *functions: tuple[Any, str, Callable[..., Any]]) -> None:
        """Replace functions.

        Args:
            functions: For each: its owner, its name, and the replacement in calls, whose first
                argument is the current call's object.
        """
        for owner, name, in_call in functions:
            patch = self._patches.get(name)
            try:
                members = vars(owner)
                is_own = name in members
                original = members[name] if is_own else getattr(type(owner), name, None)
                is_made = (
                    patch is not None
                    and patch.owner is owner
                    and patch.is_own is is_own
                    and patch.original is original
                )
                if patch is None or not is_made:
                    patch = self._make(owner, name, in_call, is_own=is_own, original=original)
            except (TypeError, AttributeError):
                continue  # the user has replaced it by something that cannot be patched
            setattr(owner, name, patch.replacement)
            self._installed.append(patch)

    def remove(self) -> None:
        """Restore the originals."""
        while self._installed:
            patch = self._installed.pop()
            # A later patch (by a running cell, or by the user) stays: ours only calls the original
            # once no call is active.
            if vars(patch.owner).get(patch.name) is not patch.replacement:
                continue
            if patch.is_own:
                setattr(patch.owner, patch.name, patch.function)
            else:
                delattr(patch.owner, patch.name)

    def _make(
        self, owner: Any, name: str, in_call: Callable[..., Any], *, is_own: bool, original: Any
    ) -> _Patch:
        function, current = getattr(owner, name), self._current

        def replacement(*args: Any, **kwargs: Any) -> Any:
            call = current.get()
            return function(*args, **kwargs) if call is None else in_call(call, *args, **kwargs)

        patch = _Patch(owner, name, is_own, original, function, replacement)
        if original is not None:  # otherwise `__getattr__` may return another one next time
            self._patches[name] = patch
        return patch


_OWN_WRITE = "_mcp_notebook_write"
"""Attribute of a routed stream: the ``write`` that was set on it."""


def route_stream(stream: Any, taker: Callable[[], Callable[[str], object] | None]) -> bool:
    """Route a stream: before it writes a text, it asks for the caller's receiver.

    Args:
        stream: Any stream written in Python; others are left alone.
        taker: Returns the receiver of what the caller prints; None: the stream itself.

    Returns:
        Whether the stream was changed; False if it is routed already.
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
