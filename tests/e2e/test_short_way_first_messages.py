"""What a stdio client sends first is answered as by the SDK, and the SDK takes over when it has to.

The same lines go to a server that answers them without the SDK and to one with the SDK alone. A
client that has begun without the SDK then sends what only the SDK answers.
"""

import asyncio
import json
import os

import anyio
import pytest
from generated_requests import TOOLS
from live import TIMEOUT, kernel_with, record_of
from short_way import FIRST, both_sides, normalise_message, serve_pipes

from mcp_notebook.bridge.server.forms.tool_form import VERSIONS
from mcp_notebook.wire import messages

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name == "nt", reason="pipes")]

CLIENT = {"name": "c", "version": "1", "title": "C"}
FORMS = {"elicitation": {}, "roots": {"listChanged": True}}
META = FIRST["modern"]["params"]["_meta"]
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


kernel = kernel_with(TOOLS)
"""A kernel with tools."""


def initialize(version, capabilities=FORMS, **changed):
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": CLIENT}
    return {"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params | changed}


def request(number, method, era="handshake", **params):
    if era == "modern":
        params["_meta"] = META
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


class Client:
    """A client of one of the two servers."""

    def __init__(self, pipes):
        self._pipes = pipes
        self.asked = 0

    async def ask(self, message):
        """Send a request, answer questions meanwhile, and return all that comes until the end."""
        await self._pipes.send(json.dumps(message).encode())
        heard = []
        with anyio.fail_after(TIMEOUT):
            while "id" in message:
                line = await self._pipes.receive()
                came = json.loads(line)
                if came.get("method") == "elicitation/create":
                    self.asked += 1
                    result = {"action": "accept", "content": {"name": "a", "size": 2}}
                    answer = {"jsonrpc": "2.0", "id": came["id"], "result": result}
                    await self._pipes.send(json.dumps(answer).encode())
                if came.get("method") != "notifications/resources/list_changed":
                    heard.append(normalise_message(line))
                if came.get("id") == message["id"] and "method" not in came:
                    return heard
        return heard


async def compare(kernel, messages, sdk_from=None):
    """Send messages to both servers, and demand the same answers.

    Args:
        kernel: The kernel.
        messages: The messages.
        sdk_from: The number of the first one for which the SDK is needed; None: of none.
    """
    async with both_sides([record_of(kernel)], kernel.home, with_http=False) as (alone, short):
        async with serve_pipes(alone) as its_pipes, serve_pipes(short) as our_pipes:
            clients = Client(its_pipes), Client(our_pipes)
            for number, message in enumerate(messages):
                expected, answered = await asyncio.gather(*(c.ask(message) for c in clients))
                assert answered == expected, message
                uses_sdk = sdk_from is not None and number >= sdk_from
                assert (short.passed_on > 0) == uses_sdk, message
        assert alone.passed_on
        return clients[1]


@pytest.mark.parametrize("version", [*VERSIONS, "1999-01-01", ""])
async def test_a_handshake_is_answered_in_each_version(kernel, version):
    ping = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
    messages = [initialize(version), ping, INITIALIZED, ping, request(1, "tools/list")]
    await compare(kernel, [*messages, request(2, "tools/call", name="report")])


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
async def test_a_newer_client_begins_without_the_sdk(kernel, method):
    await compare(kernel, [request(1, method, "modern"), request(2, "tools/list", "modern")])


@pytest.mark.parametrize(
    "first",
    [
        initialize("2025-11-25", capabilities={"elicitation": None}),
        initialize("2025-11-25", capabilities={"roots": {"listChanged": "maybe"}}),
        initialize("2025-11-25", capabilities=None),
        initialize("2025-11-25", clientInfo={"name": "c"}),
        initialize("2025-11-25", clientInfo=CLIENT | {"icons": [{"src": "data:,"}]}),
        initialize(1),
        initialize("2025-11-25", _meta={"progressToken": 1}),
        initialize("2025-11-25", _meta=META),
        request("p", "ping"),
        request("p", "ping", "modern"),
        request("l", "tools/list"),
        request("d", "server/discover"),
        {"jsonrpc": "2.0", "id": "d", "method": "server/discover"},
    ],
)
async def test_a_client_that_begins_in_an_unusual_way_is_the_sdks(kernel, first):
    await compare(kernel, [first, initialize("2025-06-18"), request(1, "tools/list")], sdk_from=0)


ASK = request(17, "tools/call", name="ask")
FOR_THE_SDK = [
    request(10, "skills/list"),
    request(11, "logging/setLevel", level="error"),
    request(12, "nobody/knows"),
    request(13, "tools/list", _meta=META),
    request(14, "resources/read", uri="notebook://k/1"),
    request(15, "ping", _meta=META),
    request(16, "tasks/get", taskId="t"),
    ASK,
    initialize("2024-11-05"),
    {"jsonrpc": "2.0", "id": 18, "method": "server/discover"},
]
"""What a client of the handshake era may send that is not plain."""


@pytest.mark.parametrize("confirms", [True, False])
@pytest.mark.parametrize("message", FOR_THE_SDK, ids=lambda message: message["method"])
async def test_the_sdk_takes_a_session_over(kernel, message, confirms):
    begin = [initialize("2025-11-25"), *([INITIALIZED] if confirms else [])]
    begin.append(request(1, "tools/list"))
    # What was said to the SDK holds for plain requests, and the other way round.
    then = [request(2, "tools/call", name="report"), request(3, "tools/list"), *FOR_THE_SDK]
    client = await compare(kernel, [*begin, message, *then], sdk_from=len(begin))
    assert client.asked == 1 + (
        message["params"].get("name") == "ask" if "params" in message else 0
    )


@pytest.mark.parametrize(
    "message",
    [
        request(10, "skills/list", "modern"),
        request(11, "ping", "modern"),
        request(12, "tools/list"),
        request(13, "nobody/knows", "modern"),
        request(14, "tools/call", "modern", name="report", requestState="s"),
        initialize("2025-11-25"),
    ],
    ids=lambda message: message["method"],
)
async def test_the_sdk_takes_over_a_client_that_has_no_session(kernel, message):
    first = request(1, "tools/call", "modern", name="add", arguments={"a": 1})
    last = request(2, "tools/list", "modern")
    await compare(kernel, [first, message, last], sdk_from=1)


async def test_what_the_sdk_has_missed_does_not_count_as_a_request(kernel):
    limits = {"max_caller_calls_per_minute": 2}
    sides = both_sides([record_of(kernel)], kernel.home, with_http=False, **limits)
    async with sides as (_, short), serve_pipes(short) as pipes:
        client = Client(pipes)
        for number, message in enumerate(
            [initialize("2025-11-25"), *[request(1, "tools/list")] * 2, *FOR_THE_SDK[:2]]
        ):
            (answer,) = await client.ask(message)
            assert ("Too many requests" in answer) == (number == 4), answer


async def test_a_client_is_notified_of_new_tools_before_and_after_the_sdk_takes_over(kernel):
    sides = both_sides([record_of(kernel)], kernel.home, with_http=False)
    async with sides as (_, short), serve_pipes(short) as pipes:
        client = Client(pipes)
        await client.ask(initialize("2025-11-25"))
        await client.ask(INITIALIZED)
        for message in (None, request(1, "skills/list")):
            if message is not None:
                await client.ask(message)
            names = [f"new{number}" for number in range(len(short.catalog.entries()))]
            new = [messages.ToolInfo(name=name, input_schema={"type": "object"}) for name in names]
            short.catalog.set_kernel("another", notebook="another", tools=new)
            short.server.note_change()
            with anyio.fail_after(TIMEOUT):
                news = json.loads(await pipes.receive())
            assert news == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
