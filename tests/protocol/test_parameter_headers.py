"""The headers that repeat arguments of a call: the official functions are the judge."""

import copy

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp.shared import inbound

from mcp_notebook.protocol.errors import ProtocolError
from mcp_notebook.protocol.parameter_headers import (
    HEADER_KEY,
    PREFIX,
    ParameterHeaders,
    check_parameter_headers,
    list_parameter_headers,
    walk_positions,
    write_parameter_headers,
)

NAMES = ("a", "b", "properties")
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([1.0, 1.5, 1e16, 10**20, "", "a", " a ", "é", "1", "1.0", "=?base64?YQ==?="])
    | st.lists(st.just(1), max_size=1)
)


def leaves():
    """Schemas of single values, many of them with the keyword."""
    tokens = st.sampled_from(["Region", "region", "N", "x-y", "", "a b", "é", 7, None])
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(
                ["string", "integer", "boolean", "number", "object", None, ["string"], {}]
            ),
            HEADER_KEY: tokens,
            "default": st.just({HEADER_KEY: "N"}),
            "enum": st.just([{HEADER_KEY: "N"}]),
            "$ref": st.just("#/$defs/a"),
        },
    )


def schemas():
    """Schemas within schemas, at places where the keyword may be and where not."""

    def nest(inner):
        named = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
        return st.fixed_dictionaries(
            {},
            optional={
                "type": st.just("object"),
                "properties": named | st.just([]),
                "$defs": named,
                "patternProperties": named,
                "items": inner,
                "contentSchema": inner,
                "allOf": st.lists(inner, max_size=2) | st.just({}),
                "not": inner,
                "const": inner,
            },
        )

    flat = st.dictionaries(st.sampled_from(NAMES), leaves(), min_size=1).map(
        lambda properties: {"type": "object", "properties": properties}
    )
    return flat | st.recursive(leaves(), nest, max_leaves=6)


def valid_schemas():
    """Schemas whose headers are valid, at two levels."""
    kinds = st.sampled_from(["string", "integer", "boolean"])
    tokens = st.lists(
        st.sampled_from(["Region", "n", "X-Y", "z"]), min_size=3, max_size=3, unique=True
    )

    def make(kinds, tokens):
        one, two, three = (
            {"type": kind, HEADER_KEY: token} for kind, token in zip(kinds, tokens, strict=True)
        )
        inner = {"type": "object", "properties": {"c": three}}
        return {"type": "object", "properties": {"a": one, "b": two, "properties": inner}}

    return st.builds(make, st.lists(kinds, min_size=3, max_size=3), tokens)


ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "a": VALUES,
        "b": VALUES,
        "properties": VALUES | st.fixed_dictionaries({}, optional={"c": VALUES}),
    },
)


def test_the_keyword_and_the_prefix_are_the_sdks():
    assert inbound.X_MCP_HEADER_KEY == HEADER_KEY
    assert inbound.MCP_PARAM_HEADER_PREFIX.lower() == PREFIX


@given(schemas() | valid_schemas() | VALUES)
@example({HEADER_KEY: "a", "type": "string"})
@example({"type": "object", "properties": {"a": {HEADER_KEY: "n", "type": "number"}}})
def test_a_schema_has_the_headers_that_the_sdk_finds_or_none_if_one_is_invalid(schema):
    expected = {}
    if inbound.find_invalid_x_mcp_header(schema) is None:
        for path, token in inbound.x_mcp_header_map(schema).items():
            expected[path] = f"{PREFIX}{token}".lower()
    assert {header.path: header.name for header in list_parameter_headers(schema)} == expected


def test_a_schema_may_be_as_deep_as_it_likes():
    schema = {"type": "string", HEADER_KEY: "n"}
    for _ in range(20_000):
        schema = {"properties": {"a": schema}}
    (header,) = list_parameter_headers(schema)
    assert len(header.path) == 20_000
    assert sum(1 for _ in walk_positions(schema)) == 20_001


@given(valid_schemas(), ARGUMENTS)
def test_arguments_are_repeated_as_by_the_sdk(schema, arguments):
    expected = inbound.mcp_param_headers(inbound.x_mcp_header_map(schema), arguments)
    headers = write_parameter_headers(list_parameter_headers(schema), arguments)
    assert headers == {name.lower(): value for name, value in expected.items()}


@given(valid_schemas(), ARGUMENTS)
def test_what_a_client_repeats_is_what_the_server_expects(schema, arguments):
    headers = list_parameter_headers(schema)
    written = write_parameter_headers(headers, arguments)
    fields = [(name.encode(), value.encode()) for name, value in written.items()]
    check_parameter_headers(headers, arguments, fields)


@given(valid_schemas() | schemas(), ARGUMENTS, st.data())
def test_headers_that_differ_are_refused_as_by_the_sdk(schema, arguments, data):
    headers = list_parameter_headers(schema)
    written = write_parameter_headers(headers, arguments)
    names = st.sampled_from([*(header.name for header in headers), f"{PREFIX}other"])
    values = st.sampled_from(["", "a", "1", "01", "-0", "1.00", "1.5", "1e16", "true", "True"])
    values |= st.sampled_from(["=?base64?YQ==?=", "=?base64?YQ?=", "=?base64?4pyT?=", "9" * 5_000])
    for name in data.draw(st.lists(names, max_size=2)):
        value = data.draw(st.none() | values)
        written.pop(name, None)
        if value is not None:
            written[name] = value
    before = copy.deepcopy(arguments)
    judged = inbound.validate_mcp_param_headers(schema, arguments, written)
    fields = [(name.encode(), value.encode()) for name, value in written.items()]
    assert find_code(headers, arguments, fields) == (None if judged is None else judged.code)
    assert arguments == before


def find_code(headers, arguments, fields):
    """Return the code with which headers are refused, None if they are not."""
    try:
        check_parameter_headers(headers, arguments, fields)
    except ProtocolError as error:
        return error.code
    return None


@pytest.mark.parametrize("value", ["EU", None])
def test_a_header_that_comes_twice_is_refused_even_with_the_same_value(value):
    schema = {"properties": {"a": {"type": "string", HEADER_KEY: "Region"}}}
    field = (b"mcp-param-region", b"EU")
    with pytest.raises(ProtocolError, match="came more than once"):
        check_parameter_headers(list_parameter_headers(schema), {"a": value}, [field, field])


def test_a_header_that_is_no_ascii_differs_from_any_argument():
    schema = {"properties": {"a": {"type": "string", HEADER_KEY: "Region"}}}
    for raw in (b"=?base64?\xe9?=", b"\xe9"):
        with pytest.raises(ProtocolError, match="differs from the argument 'a'"):
            check_parameter_headers(
                list_parameter_headers(schema), {"a": "e"}, [(b"mcp-param-region", raw)]
            )


@pytest.mark.parametrize("odd", [None, [], {}, {"tools": 5}, {"tools": [None, {"name": 1}]}])
def test_arguments_that_belong_into_headers_are_known_from_the_last_list_of_tools(odd):
    region = {"type": "string", "x-mcp-header": "Region"}
    marked = {"type": "object", "properties": {"region": region}}
    known = ParameterHeaders()
    params = {"name": "top", "arguments": {"region": "EU"}}
    assert known.list_headers("tools/call", params) == {}
    known.learn({"tools": [{"name": "top", "inputSchema": marked}]})
    known.learn(odd)
    assert known.list_headers("tools/call", params) == {"mcp-param-region": "EU"}
    assert known.list_headers("tools/call", {"name": "top"}) == {}
    assert known.list_headers("prompts/get", params) == {}
    known.learn({"tools": [{"name": "top", "inputSchema": {"type": "object"}}]})
    assert known.list_headers("tools/call", params) == {}
