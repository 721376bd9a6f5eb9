"""The trace of a request: from the client to the tool, in both eras."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linked_servers import linked_client
from starlette.datastructures import Headers

from mcp_notebook.bridge.server.calls.call_starter import read_trace_headers

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
WHOLE = {"traceparent": PARENT, "tracestate": "rojo=00f067aa0ba902b7", "baggage": "user=ada"}
TOOL = """%%mcp_tool
def headers(ctx: Context) -> dict[str, str]:
    "The trace."
    return ctx.trace.headers
"""


def request(meta=None, headers=None):
    return SimpleNamespace(meta=meta or {}, headers=headers and Headers(headers))


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_tool_sees_the_trace_of_its_client(shared_kernel, era):
    shared_kernel.ok("from mcp_notebook import Context")
    shared_kernel.ok(TOOL)
    async with linked_client(shared_kernel, era) as client:
        traced = await client.call_tool("headers", {}, meta=WHOLE)
        untraced = await client.call_tool("headers", {})
    assert json.loads(traced.content[0].text) == WHOLE
    assert untraced.content[0].text == "{}"


@pytest.mark.parametrize(
    ("meta", "headers", "expected"),
    [
        (WHOLE, None, WHOLE),
        (None, WHOLE, WHOLE),
        ({}, {"Traceparent": PARENT}, {"traceparent": PARENT}),
        ({"traceparent": PARENT}, WHOLE, {"traceparent": PARENT}),
        ({"baggage": "a=b"}, WHOLE, WHOLE | {"baggage": "a=b"}),
        ({"baggage": "a=b"}, None, {"baggage": "a=b"}),
        ({"tracestate": "a=b"}, None, {}),
        (None, None, {}),
    ],
)
def test_the_trace_is_read_from_meta_and_else_from_http(meta, headers, expected):
    assert read_trace_headers(request(meta, headers)) == expected


@pytest.mark.parametrize(
    "value",
    [
        "",
        None,
        7,
        [PARENT],
        PARENT.upper(),
        PARENT + "\n",
        PARENT + "-00",
        "ff" + PARENT[2:],
        "00-" + "0" * 32 + PARENT[35:],
        PARENT[:36] + "0" * 16 + "-01",
    ],
)
def test_an_invalid_traceparent_is_ignored_with_its_tracestate(value):
    assert read_trace_headers(request({"traceparent": value, "tracestate": "a=b"})) == {}


@pytest.mark.parametrize("name", ["tracestate", "baggage"])
@pytest.mark.parametrize("value", ["a=b\r\nHost: elsewhere", "a=\u00fc", "a=\0", "", "x" * 8193])
def test_an_invalid_header_is_left_out(name, value):
    assert read_trace_headers(request({"traceparent": PARENT, name: value})) == {
        "traceparent": PARENT
    }


values = st.one_of(st.text(), st.none(), st.integers(), st.lists(st.text()))
parents = st.one_of(st.just(PARENT), values)


@given(parents, values, values)
def test_nothing_passes_that_could_not_be_sent_as_a_header(parent, state, baggage):
    meta = {"traceparent": parent, "tracestate": state, "baggage": baggage}
    for value in read_trace_headers(request(meta)).values():
        assert value.isascii()
        assert value.isprintable()
        assert len(value) <= 8192
