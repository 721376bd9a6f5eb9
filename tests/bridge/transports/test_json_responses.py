"""How an answer over HTTP goes out: as JSON if nothing comes before it, else as an event."""

import json
import logging

import anyio
import pytest
from bridges import INITIALIZE, ask, http_bridge
from sse_starlette import EventSourceResponse

from mcp_notebook.bridge.transports.json_responses import MAX_EVENT, prefer_json

pytestmark = pytest.mark.anyio

STREAM = "text/event-stream; charset=utf-8"


async def response(*messages, method="POST", ping=15.0, gap=0.0):
    """Return the type, the rest of the headers and the bodies of what goes out."""
    sent = []

    async def events():
        for message in messages:
            await anyio.sleep(gap)
            yield {"event": "message", "data": json.dumps(message, separators=(",", ":"))}

    async def send(message):
        sent.append(message)

    async def receive():
        await anyio.sleep_forever()

    app = EventSourceResponse(events(), ping=ping, headers={"mcp-session-id": "s"})
    scope = {"type": "http", "method": method, "headers": [], "path": "/"}
    with anyio.fail_after(60):
        await prefer_json(app)(scope, receive, send)
    headers = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
    assert headers["mcp-session-id"] == "s"
    bodies = [message["body"] for message in sent[1:]]
    assert [message.get("more_body", False) for message in sent[1:]][-1] is False
    return headers, bodies


def message(**said):
    return {"jsonrpc": "2.0", **said}


@pytest.mark.parametrize("number", [1, -1, "a", 'a"\\"}', ""])
@pytest.mark.parametrize("said", [{"result": {"a": "data: \r\n\r\n"}}, {"error": {"code": 1}}])
async def test_an_answer_that_nothing_comes_before_is_json(number, said):
    answer = message(id=number, **said)
    headers, [body] = await response(answer)
    assert headers["content-type"] == "application/json"
    assert int(headers["content-length"]) == len(body)
    assert json.loads(body) == answer


@pytest.mark.parametrize(
    "first",
    [
        message(method="notifications/message", params={"result": 1}),
        message(id=1, method="elicitation/create", params={"result": {}}),
    ],
)
async def test_an_answer_behind_another_message_is_an_event(first):
    headers, bodies = await response(first, message(id=1, result={}))
    assert headers["content-type"] == STREAM
    assert "content-length" not in headers
    assert [body[:21] for body in bodies] == [b"event: message\r\ndata:"] * 2 + [b""]


async def test_a_ping_ends_the_waiting_for_an_answer():
    headers, bodies = await response(message(id=1, result={}), ping=0.01, gap=0.2)
    assert headers["content-type"] == STREAM
    assert bodies[0].startswith(b": ping")


async def test_the_log_names_the_settings_behind_an_event_that_clients_refuse(caplog):
    large = message(id=1, result={"text": "x" * MAX_EVENT})
    with caplog.at_level(logging.WARNING):
        await response(large)
        assert caplog.messages == []
        await response(message(method="m"), large)
    [said] = caplog.messages
    assert said.startswith("An answer of 1,048,")
    assert "max_result_chars" in said


def test_the_older_eras_are_answered_in_json(home):
    with http_bridge(home) as bridge:
        answer = ask(bridge.url, body=json.dumps(INITIALIZE))
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Mcp-Session-Id"]
    assert json.loads(answer.body)["id"] == INITIALIZE["id"]
