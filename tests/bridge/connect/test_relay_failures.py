"""What a client is told when the remote server does not answer as it should."""

import asyncio
import json

import anyio
import pytest
from live import TIMEOUT
from web_stand_ins import web_server

from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.relay import Relay
from mcp_notebook.bridge.connect.remote import Remote, open_http

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("shared_certificates")]
JSON, EVENTS = {"Content-Type": "application/json"}, {"Content-Type": "text/event-stream"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
MOST = 10_000


class Lines:
    """A client in this process."""

    def __init__(self):
        self.inbox = asyncio.Queue()
        self.outbox = asyncio.Queue()

    async def receive(self):
        return await self.inbox.get()

    async def send(self, message):
        self.outbox.put_nowait(json.loads(message.body))

    def say(self, content):
        self.inbox.put_nowait(json.dumps({"jsonrpc": "2.0", **content}).encode())

    async def hear(self):
        with anyio.fail_after(TIMEOUT):
            return await self.outbox.get()


async def talk(answer, *contents, count=1, path="/mcp", retry_limit=0.5):
    """Send messages to a server that answers so, and return so many of what comes back."""
    lines = Lines()
    with web_server(answer) as url:
        async with open_http() as http, anyio.create_task_group() as tasks:
            remote = Remote(http, f"{url}{path}", Credentials("t", "the file t"))
            tasks.start_soon(Relay(lines, remote, MOST, retry_limit=retry_limit).run)
            for content in contents:
                lines.say(content)
            heard = [await lines.hear() for _ in range(count)]
            lines.inbox.put_nowait(None)
    return heard


def request(method="tools/call", number=1, *, modern=True, **params):
    meta = {"_meta": META} if modern else {}
    return {"id": number, "method": method, "params": {"name": "top", **params, **meta}}


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ((401, {}, ""), "does not accept the token from the file t"),
        ((403, {}, "<html>"), "does not accept the token from the file t"),
        ((404, {}, "<html>"), "The server no longer exists"),
        ((302, {"Location": "/login?next=/mcp"}, ""), "does not accept the token"),
        ((424, {}, ""), "is not running"),
        ((500, {}, "oops"), "status 500"),
        ((502, {}, ""), "'top' may have run"),
        ((503, {}, ""), "is not available"),
        ((None, {}, ""), "'top' may have run"),
        ((200, EVENTS, ": ping\n\n"), "'top' may have run"),
        ((200, {"Content-Type": "text/html"}, "<h1>Welcome</h1>"), "'top' may have run"),
        ((202, {}, ""), "status 202"),
        ((404, JSON, '{"error": "No open notebook."}'), "No open notebook."),
    ],
)
@pytest.mark.parametrize("modern", [True, False])
async def test_a_call_that_gets_no_answer_is_answered_with_an_error(response, reason, modern):
    (answer,) = await talk(lambda _request: response, request(modern=modern))
    assert answer["id"] == 1
    assert reason in answer["error"]["message"]


@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize("method", ["tools/call", "subscriptions/listen"])
async def test_a_server_that_its_hub_has_stopped_meanwhile_is_not_blamed_on_the_token(
    method, modern
):
    """JupyterHub 5: what is posted lacks a cookie, and what is read leads to a page to start it."""

    def answer_as_hub(request):
        if request.method == "POST":
            return 403, {"Content-Type": "text/html"}, "<html>'_xsrf' argument missing from POST"
        return 302, {"Location": f"/hub{request.path}"}, ""

    def refuse(request):
        return 403, JSON, "{}"

    asked = request(method, modern=modern)
    (answer,) = await talk(answer_as_hub, asked, path="/user/x/mcp")
    assert "is not running. Start it in the browser, at http" in answer["error"]["message"]
    assert "token" not in answer["error"]["message"]
    (answer,) = await talk(refuse, asked, path="/user/x/mcp")
    assert "does not accept the token" in answer["error"]["message"]


async def test_a_list_that_gets_lost_is_asked_for_again():
    answers = [(None, {}, ""), (503, {}, ""), (200, JSON, '{"jsonrpc":"2.0","id":1,"result":{}}')]
    ask = request("tools/list")
    (answer,) = await talk(lambda _request: answers.pop(0), ask, retry_limit=TIMEOUT)
    assert answer["result"] == {}


async def test_a_question_that_came_with_a_lost_call_is_taken_back():
    question = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}}
    body = f"data: {json.dumps(question)}\n\n"
    heard = await talk(lambda _request: (200, EVENTS, body), request(modern=False), count=3)
    assert [message.get("method") for message in heard] == [
        "elicitation/create",
        "notifications/cancelled",
        None,
    ]
    assert heard[1]["params"]["requestId"] == "q"


async def test_a_call_whose_headers_are_not_known_is_made_again_with_them():
    region = {"type": "string", "x-mcp-header": "Region"}
    tool = {"name": "top", "inputSchema": {"type": "object", "properties": {"region": region}}}
    pages = [{"tools": [], "nextCursor": "2"}, {"tools": [tool]}]
    asked = []

    def answer(incoming):
        content = json.loads(incoming.body)
        asked.append((content["method"], incoming.headers["Mcp-Param-Region"]))
        result = {"error": {"code": -32020, "message": "Header mismatch"}}
        if content["method"] == "tools/list":
            result = {"result": pages[1 if content["params"].get("cursor") else 0]}
        elif incoming.headers["Mcp-Param-Region"]:
            result = {"result": {}}
        return 200, JSON, json.dumps({"jsonrpc": "2.0", "id": content["id"], **result})

    (heard,) = await talk(answer, request(arguments={"region": "EU"}))
    assert heard == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert asked == [
        ("tools/call", None),
        ("tools/list", None),
        ("tools/list", None),
        ("tools/call", "EU"),
    ]


OTHER_IDS = [2, "1", "other", -1, None]


def of(number, **content):
    return json.dumps({"jsonrpc": "2.0", "id": number, **(content or {"result": {"of": number}})})


@pytest.mark.parametrize("number", OTHER_IDS)
@pytest.mark.parametrize("modern", [True, False])
async def test_an_answer_to_another_request_is_not_this_ones(number, modern):
    ours, other = of(1), of(number)
    (heard,) = await talk(lambda _request: (200, JSON, other), request(modern=modern))
    assert heard["id"] == 1
    assert "'top' may have run" in heard["error"]["message"]
    both = f"data: {other}\n\ndata: {ours}\n\n"
    (heard,) = await talk(lambda _request: (200, EVENTS, both), request(modern=modern))
    assert heard == json.loads(ours)


async def test_two_answers_that_the_server_has_mixed_up_go_to_nobody():
    def answer(incoming):
        return 200, JSON, of(3 - json.loads(incoming.body)["id"])

    heard = await talk(answer, request(number=1), request(number=2), count=2)
    assert sorted(message["id"] for message in heard) == [1, 2]
    assert all("may have run" in message["error"]["message"] for message in heard)


@pytest.mark.parametrize("number", OTHER_IDS)
async def test_a_subscription_is_not_ended_by_an_answer_to_another_request(number):
    end = of(1, error={"code": -32601, "message": "No."})
    body = f"data: {of(number)}\n\ndata: {end}\n\n"
    (heard,) = await talk(lambda _request: (200, EVENTS, body), request("subscriptions/listen"))
    assert heard == json.loads(end)
