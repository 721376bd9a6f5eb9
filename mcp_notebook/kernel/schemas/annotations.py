"""Type hints as pydantic takes them: strings evaluated, attrs classes and TypedDict translated.

Runs in the user's kernel, at definition, on any thread; instances of attrs classes are made
wherever a call runs. attrs is never imported: a class tells its fields itself.
"""

import builtins
import collections.abc
import inspect
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import typing_extensions
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from mcp_notebook.kernel.safe.text import describe_error

FIELD_HINTS = "mcp_notebook_hints"
"""In the metadata of the schema of an attrs class: its fields' hints, as clients name them."""


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
    """Return the annotation with ``Any`` for every name that is not defined, and these names.

    Where it cannot be evaluated even so, all of it is ``Any``.

    Args:
        annotation: As for `resolve_hint`.
        namespace: The globals of the function.
    """
    names = _KnownNames(namespace)
    try:
        return resolve_hint(annotation, names), tuple(names.missing)
    except Exception:  # noqa: BLE001 - the author's expression, with something else in it
        return Any, tuple(names.missing)


class _KnownNames(dict[str, Any]):
    """Variables among which no name is missing."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        super().__init__({**vars(builtins), **namespace})
        self.missing: dict[str, None] = {}

    def __missing__(self, name: str) -> Any:
        if name in collections.abc.__all__:  # mostly what else is imported for type checkers
            return getattr(collections.abc, name)
        self.missing[name] = None
        return Any


def translate_hint(annotation: Any, within: tuple[Any, ...] = ()) -> Any:
    """Return the annotation with what pydantic does not know in a form that it does.

    These are attrs classes, and before Python 3.12 ``typing.TypedDict``: authors should not have to
    know that pydantic wants the one of ``typing_extensions``.

    Raises:
        TypeError: For one that contains itself, which cannot be translated.
    """
    if _is_attrs_class(annotation):
        return _translate_attrs(annotation, within)
    if sys.version_info < (3, 12) and typing.is_typeddict(annotation):
        return _translate_typed_dict(annotation, within)
    arguments = get_args(annotation)
    origin = get_origin(annotation)
    if not arguments or origin is typing.Literal:
        return annotation
    if origin is Annotated:
        base, *extras = arguments
        return Annotated[(translate_hint(base, within), *extras)]
    changed = tuple(translate_hint(argument, within) for argument in arguments)
    if changed == arguments:
        return annotation
    # Not `|` for a union: that is a method of classes, and not of all that may stand in one.
    return Union[changed] if origin in (Union, types.UnionType) else origin[changed]  # noqa: UP007


def _translate_attrs(annotation: Any, within: tuple[Any, ...]) -> Any:
    if annotation in within:
        raise TypeError(f"{annotation.__name__}, an attrs class, contains itself")
    ancestors = (*within, annotation)
    hints = [
        (name, translate_hint(hint, ancestors))
        for name, hint in get_type_hints(annotation, include_extras=True).items()
    ]
    return Annotated[annotation, _AttrsSchema(annotation, tuple(hints))]


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


# -- attrs classes --------------------------------------------------------------------------------


def _is_attrs_class(annotation: Any) -> bool:
    """Tell whether a type hint is a class that attrs made, or inherits from one."""
    fields = getattr(annotation, "__attrs_attrs__", None)
    return inspect.isclass(annotation) and isinstance(fields, tuple)


@dataclass(frozen=True)
class _AttrsSchema:
    """Tells pydantic, from within ``Annotated``, what an attrs class takes.

    Args:
        kind: The class.
        hints: The resolved type hints of its fields.
    """

    kind: type
    hints: tuple[tuple[str, Any], ...]

    def __get_pydantic_core_schema__(
        self,
        source: Any,
        handler: GetCoreSchemaHandler,
    ) -> CoreSchema:
        """Return the schema of an object with the class's fields, made an instance."""
        hints = dict(self.hints)
        fields, names, hints_by_alias = {}, {}, {}
        for item in self.kind.__attrs_attrs__:  # type: ignore[attr-defined]
            if not item.init:
                continue
            hint = hints.get(item.name, Any)
            schema = handler.generate_schema(hint)
            required = type(item.default).__name__ == "_Nothing"
            # A factory makes a value anew for each instance, and may do anything: not told.
            if not required and not hasattr(item.default, "takes_self"):
                schema = core_schema.with_default_schema(schema, default=item.default)
            name = getattr(item, "alias", None) or item.name.lstrip("_")
            fields[name] = core_schema.typed_dict_field(schema, required=required)
            names[name], hints_by_alias[name] = item.name, hint
        fields_schema = core_schema.typed_dict_schema(
            fields, extra_behavior="forbid", metadata={FIELD_HINTS: hints_by_alias}
        )

        def serialize(value: Any, write: Callable[[Any], Any]) -> Any:
            if isinstance(value, self.kind):
                value = {alias: getattr(value, name) for alias, name in names.items()}
            return write(value)

        return core_schema.no_info_wrap_validator_function(
            self._make_instance,
            fields_schema,
            serialization=core_schema.wrap_serializer_function_ser_schema(
                serialize, schema=fields_schema
            ),
        )

    def _make_instance(self, value: Any, fields: Callable[[Any], Any]) -> Any:
        if isinstance(value, self.kind):  # a default
            return value
        members = fields(value)
        try:
            return self.kind(**members)
        except Exception as error:
            # The class's own validators raise TypeError, too, which pydantic lets through.
            raise PydanticCustomError(
                "value_error", "{reason}", {"reason": describe_error(error)}
            ) from error
