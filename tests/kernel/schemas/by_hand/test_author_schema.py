"""Arguments by a schema that the author wrote: what fits, and what a refusal says."""

import functools

import pytest

from mcp_notebook.errors import DefinitionError, InvalidArguments
from mcp_notebook.kernel.schemas.by_hand.author_schema import read_author_schema
from mcp_notebook.kernel.schemas.validation_messages import MAX_LINES
from mcp_notebook.kernel.tools.context import Context

EITHER = (
    "arguments: correct one of these: a: missing; allowed: any value; or "
    "b: missing; allowed: any value."
)


def anything(**arguments):
    """Do."""
    return arguments


def of(**properties):
    return {"type": "object", "properties": properties}


def validated(schema, arguments, function=anything):
    return read_author_schema(function, schema, "lookup").validate(arguments)


def refusal(schema, arguments, function=anything):
    with pytest.raises(InvalidArguments) as raised:
        validated(schema, arguments, function)
    return str(raised.value)


def misfit(schema, function):
    with pytest.raises(DefinitionError) as raised:
        read_author_schema(function, schema, "lookup", hidden_types=(Context,))
    return str(raised.value)


def test_arguments_come_as_they_were_sent_and_defaults_are_the_handlers():
    schema = of(a={"type": "number", "default": 5}, b={"format": "date"})
    assert validated(schema, {"b": "2024-12-31", "c": [1]}) == {"b": "2024-12-31", "c": [1]}


@pytest.mark.parametrize(
    ("schema", "arguments", "said"),
    [
        (of(a={"type": "integer"}), {"a": "x"}, "a: got 'x' (string); allowed: integer."),
        (of(a={"type": "integer"}), {"a": True}, "a: got True (boolean); allowed: integer."),
        (
            of(a={"type": "integer", "minimum": 1, "maximum": 5}),
            {"a": 9},
            "a: got 9 (integer); allowed: integer from 1 to 5.",
        ),
        (
            {**of(a={"type": "integer"}), "required": ["a", "b"]},
            {},
            "a: missing; allowed: integer.\nb: missing; allowed: any value.",
        ),
        (
            {**of(limit={}), "additionalProperties": False, "allOf": [{"type": "object"}]},
            {"limt": 1},
            "limt: no such parameter; did you mean 'limit'?",
        ),
        (
            {**of(limit={}), "unevaluatedProperties": False},
            {"x": 1},
            "x: no such parameter; there are: limit.",
        ),
        (
            {**of(a={}), "dependentRequired": {"a": ["b"]}},
            {"a": 1},
            "arguments: got {'a': 1} (object); its schema says `dependentRequired`: {'a': ['b']}.",
        ),
        (
            {**of(a={}), "propertyNames": {"maxLength": 2}},
            {"abc": 1},
            "arguments: got the key 'abc'; allowed: any value of at most 2 characters.",
        ),
        (
            {**of(), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {},
            EITHER,
        ),
        (
            of(a={"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            {"a": "x"},
            "a: got 'x' (string); allowed: integer | null.",
        ),
        (
            of(a={"oneOf": [{"type": "integer"}, {"type": "number"}]}),
            {"a": 1},
            "a: got 1 (integer); it matches several of the 2 alternatives, but may match only one.",
        ),
        (
            {**of(a={}), "if": {"required": ["a"]}, "then": {"properties": {"b": False}}},
            {"a": 1, "b": 2},
            "b: got 2 (integer); not allowed here.",
        ),
        (
            of(a={"items": {"properties": {"b": {"type": "string"}}}}),
            {"a": [{}, {"b": 1}]},
            "a[1].b: got 1 (integer); allowed: string.",
        ),
    ],
)
def test_a_refusal_names_the_parameter_what_came_and_what_is_allowed(schema, arguments, said):
    assert refusal(schema, arguments) == said


def test_many_problems_are_bounded():
    message = refusal(of(a={"items": {"type": "integer"}}), {"a": ["x" * 10_000] * 1000})
    assert len(message.splitlines()) == 21
    assert len(message) < 5000


def test_what_cannot_be_compared_is_refused_too():
    assert "OverflowError" in refusal(of(a={"multipleOf": 0.5}), {"a": 10**400})
    node = {"properties": {"a": {"$ref": "#/$defs/node"}}}
    deep = {}
    for _ in range(5000):
        deep = {"a": deep}
    message = refusal({**of(a={"$ref": "#/$defs/node"}), "$defs": {"node": node}}, deep)
    assert message == "arguments: nested too deeply; send less deeply nested values."


def test_an_open_schema_over_a_function_that_is_not():
    def lookup(limit=10):
        """Do."""

    assert refusal(of(limit={}), {"limt": 1}, lookup) == (
        "limt: no such parameter; did you mean 'limit'?"
    )


def test_a_handler_that_does_not_take_what_is_offered_is_refused():
    assert "offers `a`, which the handler has no parameter for" in misfit(of(a={}), lambda: 1)
    assert "the handler requires `a`" in misfit(of(a={}), lambda a: a)

    def with_context(a: Context):
        """Do."""

    assert "for the `Context`" in misfit(of(a={}), with_context)
    required = {**of(a={}), "required": ["a"]}
    assert read_author_schema(lambda a: a, required, "lookup").validate({"a": 1}) == {"a": 1}
    assert read_author_schema(print, of(sep={}), "lookup").injected == ()


def test_a_partial_and_a_positional_default_are_taken_as_python_calls_them():
    def kept(a, b):
        return a, b

    made = functools.update_wrapper(functools.partial(kept, 1), kept)
    assert validated(of(b={"type": "integer"}) | {"required": ["b"]}, {"b": 2}, made) == {"b": 2}

    def counted(start=1, /, *, end):
        return start, end

    schema = of(end={"type": "integer"}) | {"required": ["end"]}
    assert validated(schema, {"end": 2}, counted) == {"end": 2}
    schema = read_author_schema(counted, of(start={}, end={}) | {"required": ["end"]}, "lookup")
    function, named = schema.binding.bind(counted, schema.validate({"start": 5, "end": 2}))
    assert function(**named) == (5, 2)


def test_unique_items_are_compared_as_json_schema_says_and_quickly():
    schema = of(a={"uniqueItems": True})
    assert "unique" in refusal(schema, {"a": [{"b": 1, "c": [1]}, {"c": [1.0], "b": 1}]})
    assert validated(schema, {"a": [1, True, "1", None]})
    many = [{"number": number} for number in range(20_000)]  # minutes, compared in pairs
    assert validated(schema, {"a": many})


def test_of_many_names_that_the_function_does_not_take_a_few_are_told():
    names = {f"name{index}": 1 for index in range(100_000)}
    lines = refusal(of(), names, lambda size=1: size).splitlines()
    assert lines[0].startswith("name0: no such parameter")
    assert lines[MAX_LINES:] == ["... and more problems."]
