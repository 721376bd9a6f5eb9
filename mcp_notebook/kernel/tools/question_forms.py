"""The forms of questions: converts a type to a form, and the user's answer to a value of the type.

Runs in the user's kernel, on the thread of the tool that asks. MCP's forms are flat: an object
whose properties are strings, numbers, booleans, dates, a choice of strings, or a list of such
choices. The schema of a type is rewritten to that subset; if that is impossible, the type is
rejected.

===================================  ===============================================================
argument                             form
===================================  ===============================================================
None                                 no fields: the user agrees or not
a list or tuple of strings           one choice
a dict of strings                    one choice; the user sees the values
a model, dataclass or ``TypedDict``  a property for each field
any other type                       one property, ``value``
===================================  ===============================================================
"""

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Struct
from pydantic import ValidationError, WithJsonSchema
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic_core import SchemaValidator

from mcp_notebook.errors import InvalidAnswer
from mcp_notebook.kernel.schemas.annotations import translate_hint
from mcp_notebook.kernel.schemas.parameters.callables import NO_DEFAULT
from mcp_notebook.kernel.schemas.parameters.pydantic_validator import build_schema, make_parameter
from mcp_notebook.kernel.schemas.parameters.sent_arguments import refuse_infinite
from mcp_notebook.kernel.schemas.validation_messages import (
    explain_arguments,
    format_value,
    shorten_message,
)
from mcp_notebook.text.redaction import has_secrets

VALUE = "value"
"""Name of the only property in the form of a type without fields."""
_FORMATS = frozenset({"email", "uri", "date", "date-time"})
_TEXTS = ("title", "description")
_KEYWORDS = {
    "string": ("minLength", "maxLength", "pattern"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems"),
}
"""The keywords of MCP's forms for each type of property, besides title, description and default."""
_OTHERWISE = {
    "object": "nested",
    **dict.fromkeys(("string", "integer", "number", "boolean"), "a choice of something else"),
}
"""Descriptions of rejected types, for messages."""
_NO_FORM = (
    "a secret, and MCP forbids asking for secrets in forms, which clients show and store: let the "
    "user enter it in the notebook (`getpass.getpass()` in a cell), or read it from the environment"
)
_POSSIBLE = (
    "a form has only fields of str, int, float, bool, date or datetime, a choice of strings (a "
    "Literal, an Enum) or a list of such choices"
)


class ElicitationForm(Struct, frozen=True):
    """The form for one question; converts its answer to a value."""

    schema: dict[str, Any]
    """The schema that the client gets."""
    _validator: SchemaValidator | None
    _is_whole: bool
    """Whether the whole form is the value, rather than its only property."""
    _default: Any

    def title(self, message: str) -> dict[str, Any]:
        """Return the schema with the question as the title of its only property, if it has one.

        VS Code asks with a list that shows only a property's title and description.
        """
        if self._is_whole or VALUE not in self.schema["properties"]:
            return self.schema
        titled = {"title": shorten_message(message), **self.schema["properties"][VALUE]}
        return {**self.schema, "properties": {VALUE: titled}}

    def read(self, content: Mapping[str, Any]) -> Any:
        """Return the user's answer as a value of the form's type.

        Raises:
            InvalidAnswer: The answer does not fit; one line for each problem.
        """
        if self._validator is None:
            return None
        if not self._is_whole and VALUE not in content and self._default is not NO_DEFAULT:
            return self._default
        # What a form does not ask for is left out: a client, not the user, has added it.
        asked = {key: content[key] for key in content if key in self.schema["properties"]}
        values = {VALUE: asked} if self._is_whole else asked
        schema = self.schema
        if self._is_whole:
            schema = {"type": "object", "properties": {VALUE: schema}}
        try:
            refuse_infinite(values)
            return self._validator.validate_python(values)[VALUE]
        except ValidationError as error:
            reason = explain_arguments(error, values, schema)
        except Exception as error:  # noqa: BLE001 - the author's validators may raise anything
            reason = shorten_message(f"{type(error).__name__}: {error}")
        if self._is_whole:
            reason = "\n".join(line.removeprefix(f"{VALUE}.") for line in reason.splitlines())
        raise InvalidAnswer(f"The user's answer does not fit the question: {reason}")


def make_form(kind: Any = None, default: Any = NO_DEFAULT) -> ElicitationForm:
    """Return the form for a value of a type, or for one of several choices.

    Raises:
        TypeError: MCP's forms cannot ask for it.
        ValueError: The default does not fit the type.
    """
    if kind is None:
        return ElicitationForm({"type": "object", "properties": {}}, None, False, NO_DEFAULT)
    annotation = _make_choice_type(kind) if isinstance(kind, (list, tuple, Mapping)) else kind
    try:
        if inspect.isroutine(kind):  # pydantic would use its return type
            raise TypeError("it is a function")  # noqa: TRY301
        built = build_schema([make_parameter(VALUE, translate_hint(annotation), default)])
    except Exception as error:
        # For an unknown type, pydantic's advice is meant for authors of models.
        unknown = isinstance(error, PydanticSchemaGenerationError | PydanticInvalidForJsonSchema)
        reason = "" if unknown else f" ({shorten_message(f'{type(error).__name__}: {error}')})"
        raise TypeError(
            f"elicit: {format_value(kind)} cannot be asked for{reason}: {_POSSIBLE}"
        ) from error
    published, validator = built.schema, built.validator
    definitions = published.get("$defs", {})
    schema = _resolve(published["properties"][VALUE], definitions)
    is_whole = schema.get("type") == "object" and "properties" in schema
    if is_whole and default is not NO_DEFAULT:
        raise ValueError("elicit: a form takes its defaults from its fields: remove `default`")
    fields = schema["properties"] if is_whole else {VALUE: schema}
    properties = {
        name: _restrict_property(name, item, definitions) for name, item in fields.items()
    }
    required = schema.get("required", ()) if is_whole else published.get("required", ())
    if default is not NO_DEFAULT:
        _check_default(default, validator)
    form_schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        form_schema["required"] = list(required)
    return ElicitationForm(form_schema, validator, is_whole, default)


def _make_choice_type(kind: Sequence[Any] | Mapping[Any, Any]) -> Any:
    """Return a type for a choice of strings."""
    texts = [*kind, *kind.values()] if isinstance(kind, Mapping) else [*kind]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"elicit: choices must be one or more strings, not {format_value(kind)}")
    choice: Any = Literal.__getitem__(tuple(map(str, kind)))
    if not isinstance(kind, Mapping):
        return choice
    options = [{"const": str(value), "title": str(title)} for value, title in kind.items()]
    return Annotated[choice, WithJsonSchema({"type": "string", "oneOf": options})]


def _check_default(default: Any, validator: SchemaValidator) -> None:
    try:
        validator.validate_python({VALUE: default})
    except Exception as error:  # the author's validators may raise anything
        raise ValueError(
            f"elicit: the default {format_value(default)} cannot be entered in its form"
        ) from error


# -- MCP's restricted schemas ----------------------------------------------------------------------


def _restrict_property(name: str, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """Return a property in MCP's subset of JSON Schema.

    Raises:
        TypeError: That is impossible.
    """
    schema = _resolve(schema, definitions)
    if has_secrets(schema, {"$defs": definitions}):
        raise TypeError(f"elicit: {_name_field(name)} is {_NO_FORM}")
    kind = str(schema.get("type"))
    choices = _read_choices(schema, "oneOf", definitions)
    restricted: dict[str, Any]
    if choices is not None:
        restricted = {"type": "string", **choices}
    elif kind == "array":
        items = _read_choices(_resolve(schema.get("items", {}), definitions), "anyOf", definitions)
        if items is None:
            raise _make_refusal(name, "a list of something other than choices")
        items = items if "anyOf" in items else {"type": "string", **items}
        restricted = {"type": "array", "items": items}
    elif kind in _KEYWORDS and "enum" not in schema and "const" not in schema:
        restricted = {"type": kind}
    else:
        raise _make_refusal(name, _OTHERWISE.get(kind, "of a type that forms do not have"))
    restricted |= {
        key: schema[key] for key in (*_TEXTS, *_KEYWORDS[restricted["type"]]) if key in schema
    }
    if restricted["type"] == "integer":
        restricted |= _read_bounds(schema)
    if schema.get("format") in _FORMATS and restricted["type"] == "string":
        restricted["format"] = schema["format"]
    if schema.get("default") is not None:
        restricted["default"] = schema["default"]
    return restricted


def _make_refusal(name: str, what: str) -> TypeError:
    reason = f"{_name_field(name)} is {what}, but {_POSSIBLE}"
    return TypeError(f"elicit: {reason}: ask in several questions")


def _name_field(name: str) -> str:
    return "the value" if name == VALUE else f"the field {name!r}"


def _resolve(schema: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Resolve the parts of a schema that forms lack: references, single alternatives, and null."""
    resolved: dict[str, Any] = dict(schema) if isinstance(schema, Mapping) else {}
    for _ in range(len(definitions) + 10):  # a type may refer to itself
        name = str(resolved.pop("$ref", "")).rpartition("/")[2]
        target: Any = definitions.get(name) if name else None
        for wrapper in ("allOf", "anyOf"):
            parts = [part for part in resolved.get(wrapper, ()) if part != {"type": "null"}]
            if len(parts) == 1:
                target = parts[0]
                del resolved[wrapper]
        if target is None:
            return resolved
        target_keywords = {
            key: value for key, value in target.items() if not (name and key == "title")
        }
        resolved = target_keywords | resolved
    return resolved


def _read_choices(
    schema: Mapping[str, Any], titled: str, definitions: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the keywords of a choice of strings; None if the schema is something else.

    Args:
        schema: The schema, without references.
        titled: The keyword for choices that have titles.
        definitions: The targets of references.
    """
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
    if "enum" in schema:
        texts = [value for value in schema["enum"] if value is not None]
        if not texts or not all(isinstance(text, str) for text in texts):
            return None
        names = {key: schema[key] for key in ("enumNames",) if key in schema}
        return {"enum": texts, **names}
    parts = [_resolve(part, definitions) for part in schema.get("oneOf", schema.get("anyOf", ()))]
    parts = [part for part in parts if part.get("type") != "null"]
    if not parts or not all(isinstance(part.get("const"), str) for part in parts):
        return None
    return {titled: [{"const": part["const"], "title": _get_title(part)} for part in parts]}


def _get_title(part: Mapping[str, Any]) -> str:
    return str(part.get("title", part["const"]))


def _read_bounds(schema: Mapping[str, Any]) -> dict[str, int]:
    """Return an integer's exclusive bounds as inclusive ones: MCP has no others."""
    bounds = {}
    if isinstance(above := schema.get("exclusiveMinimum"), int | float):
        bounds["minimum"] = math.floor(above) + 1
    if isinstance(below := schema.get("exclusiveMaximum"), int | float):
        bounds["maximum"] = math.ceil(below) - 1
    return bounds
