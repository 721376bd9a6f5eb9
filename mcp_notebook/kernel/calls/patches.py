"""Puts other functions in place for calls, and sends elsewhere what calls print.

Runs in the user's kernel; `environment` uses it under a lock. Outside of calls, whoever calls such
a function gets the one that was there. What stands in its place is made once, not for each call.

IPython sets ``sys.stdout.write`` at the start of each cell and puts back the old one at its end; a
patch made the same way in between is lost. So each stream gets its own class, whose ``write`` is a
data descriptor that cannot be pushed aside. A ``write`` that is set on the stream gets everything
that no call takes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class CurrentCall(Protocol):
    """A ContextVar, say."""

    def get(self) -> Any:
        """Return what belongs to the call that the caller runs in; None outside of calls."""


@dataclass(frozen=True, eq=False, slots=True)
class _Patch:
    """A function, and what stands in its place."""

    owner: Any
    name: str
    is_own: bool
    """Whether it is an attribute of its owner itself, not of the owner's class."""
    original: Any
    """As it stands there; a method of a class is not bound."""
    function: Callable[..., Any]
    replacement: Callable[..., Any]


class FunctionPatches:
    """Puts other functions in the place of those that calls must not reach, and puts them back.

    Args:
        current: Has what a call's function is given first; None outside of calls.
    """

    def __init__(self, current: CurrentCall) -> None:
        self._current = current
        self._patches: dict[str, _Patch] = {}
        """The last one of each name."""
        self._installed: list[_Patch] = []

    def install(self, *functions: tuple[Any, str, Callable[..., Any]]) -> None:
        """Put other functions in the place of these.

        Args:
            functions: Whose attribute each is, its name there, and what calls get instead: a
                function of what is current and the arguments.
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
                continue  # the user put something in its place that cannot be patched
            setattr(owner, name, patch.replacement)
            self._installed.append(patch)

    def remove(self) -> None:
        """Put back what was there."""
        while self._installed:
            patch = self._installed.pop()
            # Who patched after us (a cell that is running, the user) keeps that: ours passes
            # everything through once no call is active.
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
        if original is not None:  # else the owner finds it in its own way, and may find another one
            self._patches[name] = patch
        return patch


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
