"""Callers with tokens of their own, seen by the official client in both eras, and by raw requests.

One bridge and one kernel; each test has tokens of its own.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2
import pytest
from clients import (
    ERAS,
    LOAD,
    NO_TLS,
    ONE_ERA,
    TOKEN,
    answer_of,
    connected,
    http_bridge,
    initialize,
    over_http,
    text_of,
    tool_kernel,
    until_listed,
)
from listing import is_unknown, list_tools
from live import TIMEOUT, live_kernel
from mcp.shared.exceptions import MCPError
from task_client import TasksExtension
from typer.testing import CliRunner

from mcp_notebook.cli import main
from mcp_notebook.text.missing_tools import READ_RESOURCE

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool --tag report
import threading
began, ended = threading.Event(), threading.Event()

def top() -> str:
    "Return the best."
    return "sales top"

def drop() -> str:
    "Drop everything."
    return "sales dropped"
"""
READS = """%%mcp_tool --read-only --run thread
import time

def rain() -> int:
    "Return how much it rained."
    return 7

def wait_long() -> str:
    "Wait until it is stopped."
    began.set()
    try:
        while True:
            time.sleep(0.01)
    finally:
        ended.set()
"""
MORE = """%%mcp_tool
from typing import Annotated
from pydantic import Field
from mcp_notebook import Context

def letters(letter: str) -> str:
    "Return many letters."
    return letter * 100_000

def ask(ctx: Context) -> str:
    "Ask the user."
    return f"answer: {ctx.elicit('Sure?').action}"

def in_header(n: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Number"})]) -> int:
    "Have an argument that the headers repeat."
    return n
"""
ALL = ["top", "drop", "rain", "wait_long"]


@dataclass(frozen=True)
class Here:
    """The bridge and the kernel of these tests."""

    home: Path
    url: str
    kernel: object

    def run(self, *arguments: str) -> str:
        """Run `mcp-notebook token`, and return what it prints."""
        env = {"HOME": str(self.home)}
        answer = CliRunner().invoke(main.app, ["token", *arguments], env=env)
        assert answer.exit_code == 0, answer.output
        return answer.stdout.strip()


@pytest.fixture(scope="module")
def here(module_home):
    with (
        tool_kernel(module_home, TOOLS, READS, name="sales") as kernel,
        http_bridge(module_home) as bridge,
    ):
        yield Here(module_home, bridge.url, kernel)


async def _names(client):
    return [tool.name for tool in await list_tools(client)]


@pytest.mark.parametrize("era", ONE_ERA)
async def test_each_token_sees_and_calls_its_tools_and_no_others(here, era):
    rights = {
        "every": ([], ALL),
        "names": (["--tools", "sales.t*", "--tools", "rain,no_such"], ["top", "rain"]),
        "tag": (["--tags", "report"], ["top", "drop"]),
        "reads": (["--read-only"], ["rain", "wait_long"]),
        "both": (["--read-only", "--tools", "r*,t*"], ["rain"]),
    }
    for name, (options, tools) in rights.items():
        token = here.run("add", f"{era}-{name}", *options)
        async with over_http(here.url, era, token=token) as client:
            assert await _names(client) == tools
            for tool in ("top", "drop", "rain"):
                if tool in tools:
                    assert not (await client.call_tool(tool, {})).is_error
                    continue
                for spelling in (tool, f"sales.{tool}"):
                    refused = await client.call_tool(spelling, {})
                    assert is_unknown(refused)
                    assert f"'{spelling}'" in text_of(refused)
                    others = set(ALL) - set(tools) - {tool}
                    assert not any(other in text_of(refused) for other in others)
    async with over_http(here.url, era) as client:
        assert await _names(client) == ALL


CODE = """__import__('os').mkdir('canary')"""
ATTACKS = [
    {"c!": f"+str({CODE})#", "c": "a"},
    {"c": f"{{{CODE}}}"},
    {"c": f"\u2028{CODE}\u2029", f"x\x85{CODE}": 1},
    {"c": f"'+{CODE}+'", f"c=1)\n{CODE}#": 1},
    {"c": "a"},
]


async def test_what_a_token_may_send_never_runs_as_the_owner(here, home):
    """The owner runs the cells that `%mcp record` writes."""
    here.kernel.ok(
        "%%mcp_tool --read-only\nfrom typing import Literal\ndef cat(c: Literal['a']): ..."
    )
    async with over_http(here.url, "auto", token=here.run("add", "r", "--read-only")) as client:
        await until_listed(client, "cat")
        sources = []
        for arguments in ATTACKS:
            answer = await client.call_tool("cat", arguments)
            assert answer.is_error == (arguments != {"c": "a"})
            sources.append(here.kernel.insert("%mcp record"))
    for source in [*sources, *(f"%mcp call cat {json.dumps(arguments)}" for arguments in ATTACKS)]:
        here.kernel.run(source)
    # In a fresh kernel `cat` is a magic, which gives its line to a shell.
    with live_kernel(home) as fresh:
        fresh.ok(LOAD)
        said = [fresh.run(source).text for source in sources]
        assert [text for text in said if "declares nothing called 'cat'" not in text] == []
        assert not (home / "canary").exists()
    assert not (here.home / "canary").exists()
    here.kernel.ok("del cat")
    async with over_http(here.url, "auto") as client:
        with anyio.fail_after(TIMEOUT):
            while "cat" in {tool.name for tool in await list_tools(client, cache_mode="bypass")}:
                pass


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("how", ["remove", "rotate"])
async def test_a_token_that_is_removed_or_rotated_is_void_at_once(here, era, how):
    name = f"{era}-{how}"
    token = here.run("add", name)
    async with over_http(here.url, era, token=token) as client:
        assert await _names(client) == ALL
        new = here.run(how, name)
        assert _status(here.url, token) == 401
        with pytest.raises((MCPError, httpx2.HTTPError)):
            await client.list_tools()
    if how == "rotate":
        async with over_http(here.url, era, token=new) as client:
            assert await _names(client) == ALL


@pytest.mark.parametrize("era", ERAS)
async def test_a_running_call_ends_with_its_token(here, era):
    here.kernel.ok("began.clear(); ended.clear()")
    name = f"{era}-running"
    token = here.run("add", name)

    async def call():
        async with over_http(here.url, era, token=token) as client:
            with pytest.raises((MCPError, httpx2.HTTPError)):
                await client.call_tool("wait_long", {})

    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await anyio.to_thread.run_sync(here.kernel.ok, "assert began.wait(60)")
            await anyio.to_thread.run_sync(here.run, "remove", name)
    here.kernel.ok("assert ended.wait(60)")


@pytest.mark.smoke
async def test_an_expired_token_is_void(here):
    token = here.run("add", "short")
    file = here.home / ".mcp-notebook" / "tokens.json"
    content = json.loads(file.read_text())
    record = next(record for record in content["tokens"] if record["name"] == "short")
    assert _status(here.url, token) == 200
    record["expires"] = record["created"]
    file.write_text(json.dumps(content))
    assert _status(here.url, token) == 401
    assert "(expired)" in here.run("list")


async def test_an_open_stream_ends_with_its_token(here):
    token = here.run("add", "streaming")
    session = _open_session(here.url, token)
    headers = _headers(token) | {"Mcp-Session-Id": session, "Accept": "text/event-stream"}
    with (
        httpx2.Client(verify=NO_TLS, timeout=TIMEOUT) as http,
        http.stream("GET", here.url, headers=headers) as stream,
    ):
        assert stream.status_code == 200
        here.run("remove", "streaming")
        with pytest.raises(httpx2.RemoteProtocolError):
            stream.read()


async def test_a_session_is_that_of_its_token_and_unknown_to_all_others(here):
    tokens = [TOKEN, here.run("add", "first"), here.run("add", "second")]
    sessions = [_open_session(here.url, token) for token in tokens]
    for number, token in enumerate(tokens):
        for other, session in enumerate(sessions):
            for method, expected in (("POST", 200), ("DELETE", 200)):
                if method == "DELETE" and number == other:
                    continue
                status, body = _use(here.url, method, token, session)
                unknown = _use(here.url, method, token, "0" * 32)
                if number == other:
                    assert status == expected
                else:
                    assert (status, body) == unknown
                    assert status == 404
    # They are all still there.
    for token, session in zip(tokens, sessions, strict=True):
        assert _use(here.url, "POST", token, session)[0] == 200


@pytest.mark.parametrize("times", [100, pytest.param(1000, marks=pytest.mark.slow)])
async def test_wrong_tokens_open_nothing_and_lock_nobody_out(here, times):
    token = here.run("add", f"patient-{times}")
    with httpx2.Client(verify=NO_TLS, timeout=TIMEOUT) as client:
        for number in range(times):
            wrong = token[:-4] + f"{number:04}"
            answer = client.post(here.url, headers=_headers(wrong), json=HELLO)
            assert answer.status_code == 401
            assert answer.json() == {"error": "The bearer token is missing or wrong."}
    assert _status(here.url, token) == 200


@pytest.mark.parametrize(
    ("transport", "options", "tools"),
    [
        ("stdio", ["--read-only", "--tools", "t*,r*", "--tools", "no"], ["rain"]),
        ("http", ["--tools", "d*"], ["drop"]),
        ("stdio", ["--exclude", "w*,*.d*", "--exclude", "t?p"], ["rain"]),
    ],
    ids=["stdio", "http", "excluded"],
)
async def test_a_bridge_can_be_limited_for_everybody(here, transport, options, tools):
    async with connected(here.home, "auto", transport, *options) as client:
        assert await _names(client) == tools
        hidden = next(tool for tool in ALL if tool not in tools)
        assert is_unknown(await client.call_tool(hidden, {}))


async def test_a_token_may_do_no_more_than_its_bridge(here):
    token = here.run("add", "limited", "--tools", "d*,r*,w*")
    with http_bridge(here.home, "--read-only", "--tools", "*ai*,t*") as bridge:
        async with over_http(bridge.url, "auto", token=token) as client:
            assert await _names(client) == ["rain", "wait_long"]


async def test_the_meta_tools_know_only_the_tools_of_their_caller(here):
    token = here.run("add", "meta", "--tools", "r*,t*")
    with http_bridge(here.home, "--meta-tools") as bridge:
        async with over_http(bridge.url, "auto", token=token) as client:
            listed = await client.call_tool("list_notebook_tools", {})
            assert re.findall(r"^- (\w+) ", text_of(listed), re.MULTILINE) == ["top", "rain"]
            called = await client.call_tool("call_notebook_tool", {"name": "rain"})
            assert text_of(called) == "7"
            for verb in ("describe_notebook_tool", "call_notebook_tool"):
                refused = await client.call_tool(verb, {"name": "drop"})
                assert refused.is_error
                assert text_of(refused) == "Unknown tool: 'drop'. The tools are: top, rain."


async def test_a_search_finds_only_the_tools_of_its_caller(here):
    token = here.run("add", "finder", "--tools", "r*,t*")
    with http_bridge(here.home, "--meta-tools=only") as bridge:
        async with over_http(bridge.url, "auto", token=token) as client:
            assert "top" not in await _names(client)
            for query in ("drop", "report", ""):
                found = await client.call_tool("search_notebook_tools", {"query": query})
                assert "drop (notebook" not in text_of(found)
            assert "There are 2 tools in these notebooks" in text_of(found)
            called = await client.call_tool("call_notebook_tool", {"name": "rain"})
            assert text_of(called) == "7"


async def test_what_is_exclusive_is_seen_by_its_token_and_the_owner_only(here):
    other = here.run("add", "other")
    own = here.run("add", "own", "--tools", "sales.dr*", "--exclusive")
    try:
        for token, tools in ((own, ["drop"]), (other, ["top", "rain", "wait_long"]), (TOKEN, ALL)):
            async with over_http(here.url, "auto", token=token) as client:
                assert await _names(client) == tools
        async with over_http(here.url, "auto", token=other) as client:
            assert is_unknown(await client.call_tool("drop", {}))
    finally:
        here.run("remove", "own")
    async with over_http(here.url, "auto", token=other) as client:
        assert await _names(client) == ALL


@pytest.fixture
async def more(here):
    here.kernel.ok(MORE)
    async with over_http(here.url, "auto") as client:
        await until_listed(client, "in_header")
    yield here
    here.kernel.ok("del letters, ask, in_header")


def _link(result):
    return next(str(block.uri) for block in result.content if block.type == "resource_link")


@pytest.mark.parametrize("era", ERAS)
async def test_the_tool_that_reads_originals_reads_the_callers_own_only(more, era):
    ann, bob = (more.run("add", f"{era}-r{name}", "--tools", "letters") for name in ("ann", "bob"))
    async with (
        over_http(more.url, era, token=ann) as by_ann,
        over_http(more.url, era, token=bob) as by_bob,
    ):
        uri = _link(await by_ann.call_tool("letters", {"letter": "a"}))
        assert not (await by_ann.call_tool(READ_RESOURCE, {"uri": uri})).is_error
        refused = await by_bob.call_tool(READ_RESOURCE, {"uri": uri})
        assert refused.is_error
        assert "does not exist" in refused.content[0].text


@pytest.mark.parametrize("era", ERAS)
async def test_the_originals_of_a_result_are_its_callers_and_the_owners_only(more, era):
    ann, bob = (more.run("add", f"{era}-{name}", "--tools", "letters") for name in ("ann", "bob"))
    async with (
        over_http(more.url, era, token=ann) as by_ann,
        over_http(more.url, era, token=bob) as by_bob,
        over_http(more.url, era) as by_owner,
    ):
        a = _link(await by_ann.call_tool("letters", {"letter": "a"}))
        b = _link(await by_bob.call_tool("letters", {"letter": "b"}))
        for client, sees in ((by_ann, {a}), (by_bob, {b}), (by_owner, {a, b})):
            listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
            assert listed & {a, b} == sees
            if client is not by_owner:
                assert listed == sees
            for uri in (a, b):
                if uri in sees:
                    (content,) = (await client.read_resource(uri)).contents
                    assert len(content.text) == 100_000
                    continue
                made_up = uri.replace("letters", "lettres")
                errors = []
                for other in (uri, made_up):
                    with pytest.raises(MCPError) as error:
                        await client.read_resource(other)
                    errors.append(str(error.value).replace(other, ""))
                assert errors[0] == errors[1]


async def test_a_waiting_call_continues_for_its_own_caller_only(more):
    ann, bob = (more.run("add", f"wait-{name}", "--tools", "ask") for name in ("ann", "bob"))
    params = {"name": "ask", "arguments": {}}
    asked = _modern(more.url, ann, "tools/call", params)["result"]
    (key,) = asked["inputRequests"]
    answer = {"inputResponses": {key: {"action": "decline"}}, "requestState": asked["requestState"]}
    for token in (bob, TOKEN):
        error = _modern(more.url, token, "tools/call", params | answer)["error"]
        assert error["code"] == -32602
        assert "Invalid or expired requestState" in error["message"]
    result = _modern(more.url, ann, "tools/call", params | answer)["result"]
    assert result["content"][0]["text"] == "answer: decline"


async def test_headers_tell_nothing_of_a_hidden_tool(more):
    token = more.run("add", "headers", "--tools", "top")
    for name in ("in_header", "no_such"):
        params = {"name": name, "arguments": {"n": 1}}
        answer = _modern(more.url, token, "tools/call", params, {"Mcp-Param-Number": "2"})
        assert answer["result"]["isError"]
        said = answer["result"]["content"][0]["text"]
        assert said.startswith(f"Unknown tool: '{name}'")
    # Whoever sees the tool is told that the two differ.
    params = {"name": "in_header", "arguments": {"n": 1}}
    answer = _modern(more.url, TOKEN, "tools/call", params, {"Mcp-Param-Number": "2"})
    assert "Unknown" not in answer["error"]["message"]


@pytest.mark.parametrize("era", ERAS)
async def test_who_sees_no_tool_is_told_what_to_do_as_if_there_were_none(here, era):
    token = here.run("add", f"{era}-nothing", "--tools", "no_such")
    async with over_http(here.url, era, token=token) as client:
        assert "No notebook offers a tool at the moment" in client.instructions
        refused = await client.call_tool("top", {})
        assert is_unknown(refused)
        assert "No open notebook offers a tool now" in text_of(refused)
    async with over_http(here.url, era) as client:
        assert "No notebook offers" not in client.instructions


async def test_no_file_has_a_token_that_was_shown(here):
    token = here.run("add", "secret")
    files = [path for path in here.home.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if token.encode() in path.read_bytes()]


# -- raw requests ----------------------------------------------------------------------------------

HELLO = initialize("2025-06-18")


def _headers(token):
    accept = "application/json, text/event-stream"
    return {"Authorization": f"Bearer {token}", "Accept": accept}


def _post(url, token, message, headers=None):
    headers = _headers(token) | (headers or {})
    return httpx2.post(url, headers=headers, json=message, timeout=TIMEOUT, verify=NO_TLS)


def _status(url, token):
    return _post(url, token, HELLO).status_code


def _open_session(url, token):
    return _post(url, token, HELLO).headers["Mcp-Session-Id"]


def _use(url, method, token, session):
    headers = _headers(token) | {"Mcp-Session-Id": session}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"} if method == "POST" else None
    answer = httpx2.request(method, url, headers=headers, json=ping, timeout=TIMEOUT, verify=NO_TLS)
    return answer.status_code, re.sub(session, "", answer.text)


def _modern(url, token, method, params, headers=None):
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": meta}}
    mirrored = {
        "MCP-Protocol-Version": version,
        "Mcp-Method": method,
        "Mcp-Name": params["name"],
    }
    return answer_of(_post(url, token, request, mirrored | (headers or {})))


HOLD = """%%mcp_tool {options}
import asyncio
held, let_go = [], asyncio.Event()

async def hold() -> str:
    "Wait until somebody says so."
    held.append(1)
    await let_go.wait()
    return "held"
"""
PLACES = 64


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        pytest.param("--read-only", id="calls"),
        pytest.param("--read-only --task", marks=pytest.mark.slow, id="tasks"),
    ],
)
async def test_guests_leave_places_in_a_kernel_to_each_other_and_to_the_user(here, options):
    here.kernel.ok(HOLD.format(options=options))
    said, news = [], anyio.Condition()

    async def call(client, tool="hold"):
        text = text_of(await client.call_tool(tool, {}))
        async with news:
            said.append(text)
            news.notify_all()
        return text

    async def call_until_busy(tasks, client, reason, count):
        """Call as often as there are places, and wait until so many calls are refused."""
        before = len(said)
        for _ in range(PLACES):
            tasks.start_soon(call, client)
        async with news:
            while len(said) < before + count:
                await news.wait()
        assert all(reason in text for text in said[before:])

    def connect(name=None):
        token = {} if name is None else {"token": here.run("add", f"{options[-4:]}-{name}")}
        return over_http(here.url, "auto", extensions=[TasksExtension()], **token)

    with anyio.fail_after(TIMEOUT):
        async with (
            connect("one") as one,
            connect("other") as other,
            connect() as user,
            anyio.create_task_group() as tasks,
        ):
            await until_listed(one, "hold")  # the cell may be ahead of the bridge
            await call_until_busy(tasks, one, "32 of your calls are running", 32)
            await call_until_busy(tasks, other, "48 calls of the user's guests are", 48)
            assert await call(user, "top") == "sales top"
            await call_until_busy(tasks, user, "64 calls are running", 48)
            assert here.kernel.ok("print(len(held))").stdout.strip() == "64"
            here.kernel.ok("let_go.set()")
    assert said.count("held") == PLACES
