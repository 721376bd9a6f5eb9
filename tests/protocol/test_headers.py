"""The headers that repeat parts of a request: the official functions are the judge."""

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp.shared import inbound
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request

from mcp_notebook.protocol.errors import HEADER_MISMATCH, ProtocolError
from mcp_notebook.protocol.headers import (
    METHOD_HEADER,
    NAME_HEADER,
    NAMES,
    VERSION_HEADER,
    check_headers,
    decode_value,
    encode_value,
    list_headers,
)
from mcp_notebook.protocol.versions import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY

MODERN = "2026-07-28"
META = {PROTOCOL_VERSION_KEY: MODERN, CLIENT_CAPABILITIES_KEY: {}}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
ENCODED = TEXTS.map(lambda text: f"=?base64?{base64.b64encode(text.encode()).decode()}?=")


def test_the_names_of_headers_are_the_sdks():
    assert VERSION_HEADER == inbound.MCP_PROTOCOL_VERSION_HEADER
    assert METHOD_HEADER == inbound.MCP_METHOD_HEADER
    assert NAME_HEADER == inbound.MCP_NAME_HEADER
    of_tasks = {method: name for method, name in NAMES.items() if method.startswith("tasks/")}
    assert dict(inbound.NAME_BEARING_METHODS) | of_tasks == dict(NAMES)


@given(TEXTS | ENCODED)
@example("")
@example(" a")
@example("a\t")
@example("a\x7f")
@example("=?base64??=")
@example("=?base64?a\nb?=")
def test_a_text_is_encoded_as_by_the_sdk_and_survives(text):
    encoded = encode_value(text)
    assert encoded == inbound.encode_header_value(text)
    assert encoded.isascii()
    assert decode_value(encoded) == text


@given(
    TEXTS
    | ENCODED
    | st.text("ABCDabcd0123+/= ", max_size=8).map(lambda text: f"=?base64?{text}?=")
    | st.binary(max_size=4).map(lambda data: f"=?base64?{base64.b64encode(data).decode()}?=")
)
@example("=?base64?QQ?=")
@example("=?base64?QR==?=")
@example("=?base64?/w==?=")
@example("=?base64?Q Q==?=")
def test_the_value_of_a_header_is_read_as_by_the_sdk(value):
    if value.isascii():
        assert decode_value(value) == inbound.decode_header_value(value)


@pytest.mark.parametrize(
    "value", ["=?base64?é?=", "=?base64?\xff\xff\xff\xff?=", "=?base64?QQ=é?="]
)
def test_a_value_that_is_no_base64_stands_for_no_text(value):
    assert decode_value(value) is None


def test_no_header_stands_for_no_text():
    assert decode_value(None) is None


PARAMS = st.fixed_dictionaries(
    {"_meta": st.just(META)},
    optional={name: TEXTS | st.none() | st.integers() for name in ("name", "uri", "taskId")},
)
METHODS = st.sampled_from([*NAMES, "tools/list", "ping", "é"])


@given(METHODS, PARAMS)
def test_what_a_client_repeats_is_what_the_server_expects(method, params):
    if isinstance(params.get(NAMES.get(method, "")), int):
        return  # refused for its parameters
    headers = list_headers(method, params)
    fields = [(name.encode(), value.encode()) for name, value in headers.items()]
    check_headers(fields, headers, method, params)


def test_a_request_without_a_version_is_not_repeated():
    assert list_headers("tools/list", {}) == {}
    assert list_headers("tools/list", {"_meta": {PROTOCOL_VERSION_KEY: 7}}) == {}


@given(METHODS, PARAMS, st.data())
def test_headers_that_differ_are_refused_as_by_the_sdk(method, params, data):
    given = list_headers(method, params)
    values = st.sampled_from(["", "x", MODERN, "tools/call", "=?base64?eA==?=", "=?base64?x"])
    for name in data.draw(st.lists(st.sampled_from([*given, NAME_HEADER]), max_size=2)):
        value = data.draw(st.none() | values | TEXTS.map(encode_value))
        given.pop(name, None)
        if value is not None:
            given[name] = value
    is_of_tasks = method.startswith("tasks/")  # which the SDK does not know
    body = {"method": "prompts/get" if is_of_tasks else method, "params": params}
    judged = given
    if is_of_tasks:
        body["params"] = params | {"name": params.get("taskId")}
    if given.get(METHOD_HEADER) == encode_value(method):  # the SDK does not encode methods
        judged = given | {METHOD_HEADER: body["method"]}
    elif is_of_tasks and given.get(METHOD_HEADER) == "prompts/get":
        return
    verdict = classify_inbound_request(body, headers=judged)
    code = verdict.code if isinstance(verdict, InboundLadderRejection) else None
    assert find_code(given, method, params) == code


def find_code(headers, method, params):
    """Return the code with which headers are refused, None if they are not."""
    fields = [(name.encode(), value.encode()) for name, value in headers.items()]
    try:
        check_headers(fields, headers, method, params)
    except ProtocolError as error:
        return error.code
    return None


@pytest.mark.parametrize("name", [VERSION_HEADER, METHOD_HEADER, NAME_HEADER])
def test_a_header_that_comes_twice_is_refused_even_with_the_same_value(name):
    params = {"name": "n", "_meta": META}
    headers = list_headers("tools/call", params)
    fields = [(key.encode(), value.encode()) for key, value in headers.items()]
    check_headers(fields, headers, "tools/call", params)
    with pytest.raises(ProtocolError, match="came more than once") as refusal:
        check_headers(
            [*fields, (name.encode(), headers[name].encode())], headers, "tools/call", params
        )
    assert refusal.value.code == HEADER_MISMATCH
