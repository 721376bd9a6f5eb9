"""Replaces an attribute of an object or a class of others, and puts it back.

Runs in the user's kernel, on the thread that owns the object.
"""

from collections.abc import Callable
from typing import Any


def replace_attribute(owner: Any, name: str, value: Any) -> Callable[[], None]:
    """Set an attribute; return a function that undoes it, unless it was set again since."""
    previous = vars(owner).get(name)

    def undo() -> None:
        if vars(owner).get(name) is not value:
            return
        if previous is None:
            delattr(owner, name)
        else:
            setattr(owner, name, previous)

    setattr(owner, name, value)
    return undo
