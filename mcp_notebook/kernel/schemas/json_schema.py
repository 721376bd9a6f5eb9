"""JSON Schemas that an author wrote by hand: checked at definition, and what validates by them.

Runs in the user's kernel. Loaded only when a value has to be compared with a schema by jsonschema,
which takes its time.
Nothing is ever fetched, and no text that a client sends can keep a validator busy for ever: regular
expressions are those of pydantic's engine, whose time grows with the text's length; Python's own
may take years for forty characters, and holds all threads of the kernel meanwhile.

``format`` is checked for the names in `FORMATS`, whatever is installed, and says nothing else.

Not here: what is done with problems that are found (`kernel.schemas.author_schema` for arguments,
`kernel.schemas.output_match` for results).
"""

import functools
import ipaddress
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, time
from typing import Any, cast

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from pydantic_core import SchemaValidator, core_schema
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.validation_messages import format_value, shorten_message

MAX_SCHEMA = 1_000_000
"""Characters of JSON that a schema may have: every client reads it in every list of tools."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_IN_PLACE = ("not", "if", "then", "else")
"""Keywords whose schema applies to the same value; also `_IN_PLACE_LISTS`, and references."""
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")


def checked(schema: Any, tool: str, option: str, *, of_arguments: bool = True) -> dict[str, Any]:
    """Return a copy of a schema that can be published and validated by.

    Args:
        schema: What the author wrote.
        tool: Name of the tool, for messages.
        option: Where it was written, for messages.
        of_arguments: It is that of all arguments together, which must be an object.

    Raises:
        DefinitionError: Names the place in the schema that cannot be, and why.
    """

    def wrong(reason: str) -> DefinitionError:
        return DefinitionError(f"`{tool}`: `{option}` {reason}")

    if not isinstance(schema, Mapping):
        raise wrong(f"is a JSON Schema, a dict, not {format_value(schema)}.")
    try:
        text = json.dumps(dict(schema), allow_nan=False, ensure_ascii=False)
        text.encode()  # a lone surrogate cannot be sent
        plain: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise wrong(_no_json(error)) from None
    if len(text) > MAX_SCHEMA:
        raise wrong(
            f"is {len(text)} characters of JSON; clients are sent at most {MAX_SCHEMA}: shorten it."
        )
    if of_arguments and plain.get("type") != "object":
        raise wrong(
            'is the schema of all arguments together: write `"type": "object"` at its top, and the '
            'arguments under `"properties"`.'
        )
    if str(plain.get("$schema", _DIALECT)).removesuffix("#") != _DIALECT:
        raise wrong(f'is JSON Schema 2020-12: `"$schema"` is {_DIALECT!r}, or left out.')
    try:
        _check(plain)
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path))
        where = f" at {place!r}" if place else ""
        raise wrong(f"is no JSON Schema{where}: {shorten_message(error.message)}.") from None
    except _NotUsableError as error:
        raise wrong(str(error)) from None
    except RecursionError:
        raise wrong("is nested too deeply: make it flatter.") from None
    return plain


def _no_json(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply: make it flatter."
    return f"is no JSON ({shorten_message(str(error))}): use what JSON has only."


def validator(schema: dict[str, Any]) -> Any:
    """Return what validates by a schema that is `checked`: a `jsonschema` validator."""
    return _Validator(
        # jsonschema would take its own validator for a schema that names its dialect.
        {key: item for key, item in schema.items() if key != "$schema"},
        registry=Registry(),  # the default one would fetch what it does not know
        format_checker=_format_checker(),
    )


def without_unusable_patterns(schema: Any) -> Any:
    """Return a schema without the regular expressions that this module could not follow."""
    if isinstance(schema, list):
        return [without_unusable_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {}
    for key, value in schema.items():
        if key == "pattern" and isinstance(value, str) and not _is_usable(value):
            continue
        usable = value
        if key == "patternProperties" and isinstance(value, dict):
            usable = {pattern: item for pattern, item in value.items() if _is_usable(pattern)}
        is_value = key in ("const", "enum", "default", "examples")
        made[key] = value if is_value else without_unusable_patterns(usable)
    return made


def _is_usable(pattern: str) -> bool:
    try:
        _regex(pattern)
    except Exception:  # noqa: BLE001 - pydantic's SchemaError, or what its engine raises
        return False
    return True


def errors(checker: Any, value: Any) -> Iterator[ValidationError]:
    """Yield what is wrong with a value, one by one as they are found."""
    yield from checker.iter_errors(value)


# -- at definition ---------------------------------------------------------------------------------


class _NotUsableError(Exception):
    """The schema is one, and cannot be used all the same; the rest of a sentence."""


def _check(schema: dict[str, Any]) -> None:
    """Look at a schema, at all schemas in it, and at those that they refer to.

    Raises:
        SchemaError: The metaschema says no.
        _NotUsableError: See there.
    """
    root: Any = DRAFT202012.create_resource(schema)
    resolver = Registry().with_resource("", root).resolver("")
    left: list[tuple[Any, Any]] = [(root, resolver)]
    _against_metaschema(schema)
    seen: dict[int, list[Any]] = {}
    while left:
        resource, around = left.pop()
        contents = resource.contents
        if isinstance(contents, bool) or id(contents) in seen:
            continue
        here = around.in_subresource(resource)
        targets = [_target(contents[key], here) for key in _REFERENCES if key in contents]
        seen[id(contents)] = [*_in_place(contents), *(target.contents for target in targets)]
        if "$schema" in contents and contents is not schema:
            raise _NotUsableError('names a `"$schema"` below its top: leave that one out.')
        _check_patterns(contents)
        left += [(inner, here) for inner in resource.subresources()]
        for target in targets:
            if id(target.contents) not in seen:
                _against_metaschema(target.contents)  # it may stand where no schema is looked for
                left.append((DRAFT202012.create_resource(target.contents), target.resolver))
    _refuse_circles(schema, seen)


_REFERENCES = ("$ref", "$dynamicRef")


def _against_metaschema(schema: Any) -> None:
    # Formats are not looked at: "regex" would be Python's, "uri-reference" as packages are there.
    checker: Any = Draft202012Validator
    checker.check_schema(schema, format_checker=None)


def _target(reference: str, resolver: Any) -> Any:
    if not reference.startswith("#"):
        raise _NotUsableError(
            f"refers to {format_value(reference)}: nothing is fetched, so put that schema under "
            '`"$defs"` and refer to it as "#/$defs/...".'
        )
    try:
        target = resolver.lookup(reference)
    except (Unresolvable, ValueError) as error:
        raise _NotUsableError(
            f"refers to {format_value(reference)}, which it does not hold: add it, or correct the "
            "reference."
        ) from error
    if not isinstance(target.contents, dict | bool):
        raise _NotUsableError(
            f"refers to {format_value(reference)}, which is no schema: correct it."
        )
    return target


def _in_place(schema: Mapping[str, Any]) -> Iterable[Any]:
    """Return the schemas within a schema that apply to the same value."""
    yield from (schema[key] for key in _IN_PLACE if key in schema)
    for key in _IN_PLACE_LISTS:
        yield from schema.get(key, ())
    yield from schema.get("dependentSchemas", {}).values()


def _check_patterns(schema: Mapping[str, Any]) -> None:
    for pattern in [*schema.get("patternProperties", ()), *filter(None, [schema.get("pattern")])]:
        try:
            _regex(pattern)
        except Exception as error:
            reason = shorten_message(str(error).rpartition("error: ")[2] or str(error))
            step = (
                "compare with it in the handler, since a client's text could take for ever"
                if "support" in reason
                else "correct it"
            )
            raise _NotUsableError(
                f"holds the regular expression {format_value(pattern)}, which cannot be used "
                f"({reason}): {step}."
            ) from error


def _refuse_circles(root: Any, applies: Mapping[int, list[Any]]) -> None:
    """Refuse a schema that leads back to itself without a step into the value."""
    done: set[int] = set()
    path: set[int] = set()

    def visit(schema: Any) -> None:
        key = id(schema)
        if key in path:
            raise _NotUsableError(
                "refers to itself in a circle, so that no value could ever be compared with it: "
                'let a reference to itself stand below `"properties"` or `"items"`.'
            )
        if key in done:
            return
        path.add(key)
        for inner in applies.get(key, ()):
            visit(inner)
        path.remove(key)
        done.add(key)

    visit(root)
    for key in applies:
        if key not in done:
            path.add(key)
            for inner in applies[key]:
                visit(inner)
            path.remove(key)
            done.add(key)


# -- keywords about regular expressions and members, in place of jsonschema's own ------------------


@functools.lru_cache(maxsize=1000)
def _regex(pattern: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))


def _matches(pattern: str, text: str) -> bool:
    return _regex(pattern).isinstance_python(text, strict=True)


def _pattern(checker: Any, pattern: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    if checker.is_type(value, "string") and not _matches(pattern, value):
        yield ValidationError(f"{format_value(value)} does not match {pattern!r}")


def _below(checker: Any, item: Any, schema: Any, key: str) -> Iterator[ValidationError]:
    """Yield what is wrong with a member, with its path, which jsonschema forgets at ``False``."""
    for error in checker.descend(item, schema):
        error.path.appendleft(key)
        yield error


def _unique_items(checker: Any, unique: Any, value: Any, _schema: Any) -> Iterator[ValidationError]:
    """Compare texts: jsonschema compares each object with each other one, for minutes at worst."""
    if unique and checker.is_type(value, "array"):
        texts = [json.dumps(_canonical(item), sort_keys=True) for item in value]
        if len(set(texts)) < len(texts):
            yield ValidationError(f"{format_value(value)} has an item twice")


def _canonical(value: Any) -> Any:
    """Return a JSON value in the form that all values equal to it by JSON Schema have."""
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _properties(
    checker: Any, properties: Mapping[str, Any], value: Any, _schema: Any
) -> Iterator[ValidationError]:
    if checker.is_type(value, "object"):
        for key, schema in properties.items():
            if key in value:
                yield from _below(checker, value[key], schema, key)


def _pattern_properties(
    checker: Any, patterns: Mapping[str, Any], value: Any, _schema: Any
) -> Iterator[ValidationError]:
    if not checker.is_type(value, "object"):
        return
    for pattern, schema in patterns.items():
        for key, item in value.items():
            if _matches(pattern, key):
                yield from _below(checker, item, schema, key)


def _additional_properties(
    checker: Any, allowed: Any, value: Any, schema: Any
) -> Iterator[ValidationError]:
    if not checker.is_type(value, "object"):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for key, item in value.items():
        if key not in named and not any(_matches(pattern, key) for pattern in patterns):
            yield from _below(checker, item, allowed, key)


def _unevaluated_properties(
    checker: Any, allowed: Any, value: Any, schema: Any
) -> Iterator[ValidationError]:
    if not checker.is_type(value, "object"):
        return
    rest = {key: item for key, item in schema.items() if key != "unevaluatedProperties"}
    evaluated = _evaluated(checker, value, rest)
    for key, item in value.items():
        if key not in evaluated:
            yield from _below(checker, item, allowed, key)


def _evaluated(checker: Any, value: Mapping[str, Any], schema: Any) -> set[str]:
    """Return the keys of an object that a schema, or one that applies in place, says more of."""
    if isinstance(schema, bool):
        return set()
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return set(value)
    found = schema.get("properties", {}).keys() & value.keys()
    patterns = schema.get("patternProperties", {})
    found |= {key for key in value if any(_matches(pattern, key) for pattern in patterns)}
    for reference in _REFERENCES:
        if reference in schema:
            target = checker._resolver.lookup(schema[reference])  # noqa: SLF001 - as its own keywords
            inner = checker.evolve(schema=target.contents, _resolver=target.resolver)
            found |= _evaluated(inner, value, target.contents)
    for inner in _applied(checker, value, schema):
        found |= _evaluated(checker, value, inner)
    return set(found)


def _applied(checker: Any, value: Mapping[str, Any], schema: Any) -> Iterator[Any]:
    """Yield the schemas in place that hold for an object."""

    def holds(inner: Any) -> bool:
        return next(checker.descend(value, inner), None) is None

    for key in _IN_PLACE_LISTS:
        yield from filter(holds, schema.get(key, ()))
    for key, inner in schema.get("dependentSchemas", {}).items():
        if key in value:
            yield inner
    if "if" in schema:
        chosen = "else"
        if holds(schema["if"]):
            chosen = "then"
            yield schema["if"]
        if chosen in schema:
            yield schema[chosen]


_Validator: Any = cast("Any", extend)(
    Draft202012Validator,
    {
        "pattern": _pattern,
        "uniqueItems": _unique_items,
        "properties": _properties,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "unevaluatedProperties": _unevaluated_properties,
    },
)


# -- formats ---------------------------------------------------------------------------------------


def _moment(text: str) -> object:
    # Also without a zone, which RFC 3339 asks for: models leave it out.
    if "T" not in text.upper():
        raise ValueError(text)
    return datetime.fromisoformat(text)


FORMATS: Mapping[str, Callable[[str], object]] = {
    "date": date.fromisoformat,
    "date-time": _moment,
    "time": time.fromisoformat,
    "email": lambda text: text.index("@"),
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "uuid": uuid.UUID,
}
"""Formats that are checked, each with what raises ValueError for another text."""


def _format_checker() -> FormatChecker:
    checker = FormatChecker(())
    for name, read in FORMATS.items():
        checker.checks(name, ValueError)(functools.partial(_is, read))
    return checker


def _is(read: Callable[[str], object], value: object) -> bool:
    if isinstance(value, str):
        read(value)
    return True
