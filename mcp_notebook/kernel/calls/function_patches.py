"""Functions of the process that are others for calls, for as long as any call is active.

Runs in the user's kernel; who uses it holds a lock. Outside of calls, whoever calls such a function
gets the one that was there. What stands in its place is made once, not for each call.
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
