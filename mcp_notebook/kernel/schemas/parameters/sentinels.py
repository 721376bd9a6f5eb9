"""Defaults that stand for "nothing was given", as ``pandas.api.extensions.no_default`` does.

Runs in the user's kernel, at definition. Pure. Clients are not told of them: what they could send
back is a text, which means something else to the function.
"""

import types
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin


class Omitted(Enum):
    """The default of what is left out of a call that has no value for it."""

    OMITTED = "omitted"


def drop_sentinel(annotation: Any, default: Any) -> Any:
    """Return a type hint without the sentinel that is the parameter's default.

    A sentinel is the only member of its enumeration, where that is not all that the hint allows.

    Args:
        annotation: The resolved type hint.
        default: The parameter's.

    Returns:
        The hint of what clients can send; None if the default is no sentinel.
    """
    if not isinstance(default, Enum) or len(type(default).__members__) > 1:
        return None
    return _drop(annotation, default)


def _drop(annotation: Any, sentinel: Enum) -> Any:
    """Return what remains of a type hint, None if nothing does."""
    arguments, origin = get_args(annotation), get_origin(annotation)
    if annotation is type(sentinel):
        return None
    if origin is Literal:
        values = tuple(value for value in arguments if value is not sentinel)
        return Literal[values] if values else None
    if origin is Annotated:
        rest = _drop(arguments[0], sentinel)
        return None if rest is None else Annotated[(rest, *arguments[1:])]
    if origin in (Union, types.UnionType):
        options = [_drop(option, sentinel) for option in arguments]
        others = tuple(option for option in options if option is not None)
        return Union[others] if others else None  # noqa: UP007 - as many as there are
    return annotation
