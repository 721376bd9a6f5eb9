"""attrs classes as type hints: the schema of their fields, an instance for the function, and back.

Runs in the user's kernel, at definition; instances are made wherever a call runs. pydantic does not
know attrs, and attrs is never imported here: a class tells its fields itself. Types and defaults
are told to clients; what validators and converters of a field do is found out by making the
instance, so that what they refuse is refused like any other argument.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from mcp_notebook.kernel.safe.text import describe_error


def is_attrs_class(annotation: Any) -> bool:
    """Tell whether a type hint is a class that attrs made, or inherits from one."""
    fields = getattr(annotation, "__attrs_attrs__", None)
    return inspect.isclass(annotation) and isinstance(fields, tuple)


@dataclass(frozen=True)
class AttrsSchema:
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
        fields, names = {}, {}
        for item in self.kind.__attrs_attrs__:  # type: ignore[attr-defined]
            if not item.init:
                continue
            schema = handler.generate_schema(hints.get(item.name, Any))
            required = type(item.default).__name__ == "_Nothing"
            # A factory makes a value anew for each instance, and may do anything: not told.
            if not required and not hasattr(item.default, "takes_self"):
                schema = core_schema.with_default_schema(schema, default=item.default)
            name = getattr(item, "alias", None) or item.name.lstrip("_")
            fields[name] = core_schema.typed_dict_field(schema, required=required)
            names[name] = item.name
        inner = core_schema.typed_dict_schema(fields, extra_behavior="forbid")

        def written(value: Any, write: Callable[[Any], Any]) -> Any:
            if isinstance(value, self.kind):
                value = {alias: getattr(value, name) for alias, name in names.items()}
            return write(value)

        return core_schema.no_info_wrap_validator_function(
            self._made,
            inner,
            serialization=core_schema.wrap_serializer_function_ser_schema(written, schema=inner),
        )

    def _made(self, value: Any, fields: Callable[[Any], Any]) -> Any:
        if isinstance(value, self.kind):  # a default
            return value
        given = fields(value)
        try:
            return self.kind(**given)
        except Exception as error:
            # The class's own validators raise TypeError, too, which pydantic lets through.
            raise PydanticCustomError(
                "value_error", "{reason}", {"reason": describe_error(error)}
            ) from error


def attrs_hints(kind: type) -> dict[str, Any]:
    """Return the type hints of an attrs class's fields.

    Raises:
        Exception: Whatever the author's expressions raise; ``NameError`` for an unknown name.
    """
    return get_type_hints(kind, include_extras=True)
