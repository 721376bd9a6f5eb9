"""Type hints as pydantic takes them: strings evaluated, ``typing.TypedDict`` translated.

Runs in the user's kernel. Pure, but for the names that a string is evaluated with; what pydantic
makes of the hints is `kernel.schemas.parameters`' business.
"""

import sys
import types
import typing
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import typing_extensions

from mcp_notebook.kernel.schemas.attrs_classes import AttrsSchema, attrs_hints, is_attrs_class


def resolved(annotation: Any, namespace: dict[str, Any]) -> Any:
    """Return the annotation with every string in it evaluated.

    Args:
        annotation: As it stands in a signature; a string after ``from __future__ import
            annotations``.
        namespace: The globals of the function.

    Raises:
        Exception: Whatever the author's expression raises; ``NameError`` for an unknown name.
    """

    def carrier() -> None: ...

    carrier.__annotations__ = {"hint": annotation}
    hint = get_type_hints(carrier, globalns=namespace, include_extras=True)["hint"]
    return portable(hint)


def portable(annotation: Any, within: tuple[Any, ...] = ()) -> Any:
    """Return the annotation with what pydantic does not know in a form that it does.

    These are attrs classes, and before Python 3.12 ``typing.TypedDict``: authors should not have to
    know that pydantic wants the one of ``typing_extensions``.

    Raises:
        TypeError: For one that contains itself, which cannot be translated.
    """
    if is_attrs_class(annotation):
        return _portable_attrs(annotation, within)
    if sys.version_info < (3, 12) and typing.is_typeddict(annotation):
        return _portable_typed_dict(annotation, within)
    arguments = get_args(annotation)
    origin = get_origin(annotation)
    if not arguments or origin is typing.Literal:
        return annotation
    if origin is Annotated:
        base, *extras = arguments
        return Annotated[(portable(base, within), *extras)]
    changed = tuple(portable(argument, within) for argument in arguments)
    if changed == arguments:
        return annotation
    # Not `|` for a union: that is a method of classes, and not of all that may stand in one.
    return Union[changed] if origin in (Union, types.UnionType) else origin[changed]  # noqa: UP007


def _portable_attrs(annotation: Any, within: tuple[Any, ...]) -> Any:
    if annotation in within:
        raise TypeError(f"{annotation.__name__}, an attrs class, contains itself")
    inner = (*within, annotation)
    hints = [(name, portable(hint, inner)) for name, hint in attrs_hints(annotation).items()]
    return Annotated[annotation, AttrsSchema(annotation, tuple(hints))]


def _portable_typed_dict(annotation: Any, within: tuple[Any, ...]) -> Any:
    if type(annotation).__module__ == "typing_extensions":
        return annotation
    if annotation in within:
        raise TypeError(
            f"{annotation.__name__} contains itself; before Python 3.12 import TypedDict from "
            "typing_extensions for it"
        )
    inner = (*within, annotation)
    hints = get_type_hints(annotation, include_extras=True)
    fields = {
        name: portable(hint, inner)
        if name in annotation.__required_keys__
        else typing_extensions.NotRequired[portable(hint, inner)]
        for name, hint in hints.items()
    }
    made = cast("Any", typing_extensions.TypedDict)(annotation.__name__, fields)
    made.__doc__ = annotation.__doc__
    return made
