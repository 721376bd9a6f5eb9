"""Type hints that pydantic does not take as they are, in a form that it takes.

Runs in the user's kernel. Pure.
"""

import functools
import operator
import sys
import types
import typing
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typing_extensions


def portable(annotation: Any) -> Any:  # noqa: PLR0911 - one for each form of annotation
    """Return the annotation with each ``typing.TypedDict`` in the form that pydantic needs.

    Before Python 3.12 that is ``typing_extensions.TypedDict``, but authors import the one from
    ``typing``, and should not have to know.
    """
    if sys.version_info >= (3, 12):
        return annotation
    if typing.is_typeddict(annotation):
        return _portable_typed_dict(annotation)
    arguments = get_args(annotation)
    origin = get_origin(annotation)
    if not arguments or origin is typing.Literal:
        return annotation
    if origin is Annotated:
        base, *extras = arguments
        return Annotated[(portable(base), *extras)]
    changed = tuple(portable(argument) for argument in arguments)
    if changed == arguments:
        return annotation
    if origin in (typing.Union, types.UnionType):
        return functools.reduce(operator.or_, changed)
    return origin[changed]


def _portable_typed_dict(annotation: Any) -> Any:
    if type(annotation).__module__ == "typing_extensions":
        return annotation
    hints = get_type_hints(annotation, include_extras=True)
    fields = {
        name: portable(hint)
        if name in annotation.__required_keys__
        else typing_extensions.NotRequired[portable(hint)]
        for name, hint in hints.items()
    }
    make: Any = typing_extensions.TypedDict  # a call that type checkers know with literals only
    made = make(annotation.__name__, fields)
    made.__doc__ = annotation.__doc__
    return made
