"""Prepares type hints for pydantic: evaluates strings, and translates types unknown to it.

Runs in the user's kernel, at definition, on any thread.
"""

import collections.abc
import sys
import types
import typing
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import typing_extensions
from pydantic import AfterValidator, BeforeValidator

from mcp_notebook.kernel.safe.libraries import is_instance

_BYTES = (bytearray, memoryview)
_LISTED = (collections.abc.Collection, collections.abc.Container, collections.abc.Reversible)
"""Abstract types of a list that pydantic does not know."""
UNPACK = (typing.Unpack, typing_extensions.Unpack)
"""The types of ``Unpack`` around the TypedDict of ``**kwargs``."""


def resolve_hint(annotation: Any, namespace: dict[str, Any]) -> Any:
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
    return translate_hint(hint)


def resolve_known_names(annotation: Any, namespace: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """Return the annotation with ``Any`` for every undefined name, and the undefined names.

    If it still cannot be evaluated, the annotation as a whole becomes ``Any``.

    Args:
        annotation: As for `resolve_hint`.
        namespace: The globals of the function.
    """
    known = dict(namespace)
    missing: list[str] = []
    while True:
        try:
            return resolve_hint(annotation, known), tuple(missing)
        except NameError as error:
            name = str(error.name)
            if name in known:  # from a `type` statement, which uses its own module's names
                return Any, tuple(missing)
            known[name] = getattr(collections.abc, name, Any)  # often imported for checkers only
            if known[name] is Any:
                missing.append(name)
        except Exception:  # noqa: BLE001 - the author's expression, with something else in it
            return Any, tuple(missing)


def translate_hint(annotation: Any, within: tuple[Any, ...] = ()) -> Any:
    """Return the annotation with types unknown to pydantic translated to types that it knows.

    These are ``bytearray`` and ``memoryview``, the abstract types of a list, numpy's ``ArrayLike``,
    and before Python 3.12 ``typing.TypedDict``: authors should not need to know that pydantic wants
    the one from ``typing_extensions``.

    Raises:
        TypeError: For a recursive class, which cannot be translated.
        Exception: As `read_alias`.
    """
    annotation = _translate_array_like(annotation)
    translated = _translate_unknown(annotation, within)
    if translated is not None:
        return translated
    value = read_alias(annotation)
    if value is not annotation:
        # A recursive alias, such as a tree, ends here.
        named = any(annotation is outer for outer in within)
        changed = value if named else translate_hint(value, (*within, annotation))
        return annotation if changed == value else changed
    arguments = get_args(annotation)
    origin = get_origin(annotation)
    if not arguments or origin in (typing.Literal, *UNPACK):
        return annotation
    if origin is Annotated:
        base, *extras = arguments
        return Annotated[(translate_hint(base, within), *extras)]
    changed = tuple(translate_hint(argument, within) for argument in arguments)
    if changed == arguments:
        return annotation
    # Not `|`: some members of a union do not support the operator.
    return Union[changed] if origin in (Union, types.UnionType) else origin[changed]  # noqa: UP007


def _translate_unknown(annotation: Any, within: tuple[Any, ...]) -> Any:
    """Return the translation of a type unknown to pydantic; None for any other."""
    if sys.version_info < (3, 12) and typing.is_typeddict(annotation):
        return _translate_typed_dict(annotation, within)
    kind = get_origin(annotation) or annotation
    if any(kind is known for known in _BYTES):
        return Annotated[bytes, BeforeValidator(_simplify_default), AfterValidator(kind)]
    if any(kind is known for known in _LISTED):
        items = [translate_hint(argument, within) for argument in get_args(annotation)]
        base = types.GenericAlias(list, tuple(items)) if items else list
        return Annotated[base, BeforeValidator(_simplify_default)]
    return None


def is_alias(annotation: Any) -> bool:
    """Return whether a type hint is an alias made by a ``type`` statement."""
    return is_instance(annotation, "typing.TypeAliasType") or isinstance(
        annotation, typing_extensions.TypeAliasType
    )


def read_alias(annotation: Any) -> Any:
    """Return the type hint behind an alias; any other hint unchanged.

    Raises:
        Exception: As `resolve_hint`; the alias's expression is evaluated here.
    """
    return annotation.__value__ if is_alias(annotation) else annotation


def _simplify_default(value: Any) -> Any:
    """Return a default in the form that clients would send: a list, or bytes."""
    if isinstance(value, memoryview):
        return bytes(value)
    return list(value) if isinstance(value, (tuple, set, frozenset)) else value


def _translate_array_like(annotation: Any) -> Any:
    """Return a type hint with numpy's array in place of its ``ArrayLike``."""
    alias = getattr(sys.modules.get("numpy.typing"), "ArrayLike", None)
    array = getattr(sys.modules.get("numpy"), "ndarray", None)
    if alias is None or array is None:
        return annotation
    if annotation is alias or annotation == alias:
        return array
    options, parts = get_args(annotation), get_args(alias)
    # In a union, `ArrayLike | None`, its members are listed one by one.
    if not parts or not all(part in options for part in parts):
        return annotation
    return Union[(array, *(option for option in options if option not in parts))]


def _translate_typed_dict(annotation: Any, within: tuple[Any, ...]) -> Any:
    if type(annotation).__module__ == "typing_extensions":
        return annotation
    if annotation in within:
        raise TypeError(
            f"{annotation.__name__} contains itself; before Python 3.12 import TypedDict from "
            "typing_extensions for it"
        )
    ancestors = (*within, annotation)
    hints = get_type_hints(annotation, include_extras=True)
    fields = {
        name: translate_hint(hint, ancestors)
        if name in annotation.__required_keys__
        else typing_extensions.NotRequired[translate_hint(hint, ancestors)]
        for name, hint in hints.items()
    }
    translated = cast("Any", typing_extensions.TypedDict)(annotation.__name__, fields)
    translated.__doc__ = annotation.__doc__
    return translated
