"""Commands are asked over stdio, in both eras of MCP, and end with all that they started."""

import sys

import anyio
import psutil
import pytest
from live import TIMEOUT

from mcp_notebook.mcp_client.client import McpClient
from mcp_notebook.mcp_client.stdio import open_command
from mcp_notebook.protocol.errors import CONNECTION_CLOSED, METHOD_NOT_FOUND, ProtocolError
from mcp_notebook.protocol.versions import LATEST_HANDSHAKE, LATEST_MODERN

pytestmark = pytest.mark.anyio
OFFICIAL = """
from mcp.server import MCPServer
server = MCPServer("official")
@server.tool()
def add(a: int, b: int) -> str:
    return str(a + b)
@server.tool()
def fail():
    raise ValueError("no data")
server.run()
"""
SCRIPT = """
import json, os, subprocess, sys, time
def say(**members):
    print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)
def hear():
    return json.loads(sys.stdin.readline())
"""


def opened(program, tmp_path, *, end_limit=2.0, **env):
    return open_command(
        [sys.executable, "-c", program],
        env=env,
        folder=tmp_path,
        errors=sys.__stderr__,
        end_limit=end_limit,
    )


@pytest.mark.parametrize("version", [LATEST_HANDSHAKE, LATEST_MODERN])
async def test_a_server_of_the_official_sdk_is_asked_in_both_eras(tmp_path, version):
    async with opened(OFFICIAL, tmp_path) as transport:
        client = McpClient(transport, "test", version)
        await client.open()
        tools = await client.list_tools()
        added = await client.call_tool("add", {"a": 2, "b": 3})
        failed = await client.call_tool("fail", {})
    assert [tool["name"] for tool in tools] == ["add", "fail"]
    assert added["content"] == [{"type": "text", "text": "5"}]
    assert failed["isError"] is True
    assert client.server.get("name") == ("official" if version == LATEST_HANDSHAKE else None)


async def test_all_pages_of_a_list_are_read(tmp_path):
    program = f"""{SCRIPT}
for number in range(3):
    asked = hear()
    assert asked["params"].get("cursor") == (str(number) if number else None)
    more = {{"nextCursor": str(number + 1)}} if number < 2 else {{}}
    say(id=asked["id"], result={{"tools": [{{"name": f"t{{number}}"}}], **more}})
hear()
"""
    async with opened(program, tmp_path) as transport:
        tools = await McpClient(transport, "test", LATEST_MODERN).list_tools()
    assert [tool["name"] for tool in tools] == ["t0", "t1", "t2"]


async def test_prints_notifications_and_other_answers_are_passed_over(tmp_path):
    program = f"""{SCRIPT}
asked = hear()
print("Loading the model...", flush=True)
print("[1, 2]", flush=True)
say(method="notifications/message", params={{"level": "info", "data": "hello"}})
say(id=999, result={{}})
say(id=asked["id"], result={{"content": []}})
hear()
"""
    async with opened(program, tmp_path) as transport:
        result = await McpClient(transport, "test", LATEST_MODERN).call_tool("t", {})
    assert result == {"content": []}


async def test_a_request_of_the_server_is_refused_and_the_answer_still_comes(tmp_path):
    program = f"""{SCRIPT}
asked = hear()
say(id="mine", method="elicitation/create", params={{}})
refused = hear()
say(id=asked["id"], result={{"content": [], "_meta": refused}})
hear()
"""
    async with opened(program, tmp_path) as transport:
        result = await McpClient(transport, "test", LATEST_MODERN).call_tool("t", {})
    refused = result["_meta"]
    assert (refused["id"], refused["error"]["code"]) == ("mine", METHOD_NOT_FOUND)


async def test_a_ping_of_the_server_is_answered(tmp_path):
    program = f"""{SCRIPT}
asked = hear()
say(id=7, method="ping")
answered = hear()
say(id=asked["id"], result={{"content": [], "_meta": answered}})
hear()
"""
    async with opened(program, tmp_path) as transport:
        result = await McpClient(transport, "test", LATEST_MODERN).call_tool("t", {})
    assert result["_meta"] == {"jsonrpc": "2.0", "id": 7, "result": {}}


async def test_a_call_that_nobody_waits_for_is_cancelled(tmp_path):
    program = f"""{SCRIPT}
say(id=hear()["id"], result={{"protocolVersion": "2025-11-25"}})
assert hear()["method"] == "notifications/initialized"
asked = hear()
open("asked", "w").close()
cancelled = hear()
say(id=hear()["id"], result={{"content": [], "_meta": [asked["id"], cancelled]}})
hear()
"""
    async with opened(program, tmp_path) as transport:
        client = McpClient(transport, "test", LATEST_HANDSHAKE)
        await client.open()
        with anyio.fail_after(TIMEOUT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "slow", {})
                while not (tmp_path / "asked").exists():  # noqa: ASYNC110 - of another process
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()
            number, cancelled = (await client.call_tool("t", {}))["_meta"]
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == number


async def test_a_server_of_another_version_is_named(tmp_path):
    program = f"""{SCRIPT}
say(id=hear()["id"], result={{"protocolVersion": "2031-01-01"}})
hear()
"""
    async with opened(program, tmp_path) as transport:
        with pytest.raises(ProtocolError, match="2031-01-01"):
            await McpClient(transport, "test", LATEST_HANDSHAKE).open()


async def test_an_error_is_raised_with_its_code_and_data(tmp_path):
    program = f"""{SCRIPT}
say(id=hear()["id"], error={{"code": -32602, "message": "No tool `t`.", "data": {{"try": "u"}}}})
say(id=hear()["id"], error="odd")
hear()
"""
    async with opened(program, tmp_path) as transport:
        client = McpClient(transport, "test", LATEST_MODERN)
        with pytest.raises(ProtocolError, match="No tool `t`") as caught:
            await client.call_tool("t", {})
        with pytest.raises(ProtocolError, match="neither a result nor an error"):
            await client.call_tool("t", {})
    assert (caught.value.code, caught.value.data) == (-32602, {"try": "u"})


async def test_a_command_that_ends_fails_what_it_was_asked(tmp_path):
    async with opened("input()", tmp_path) as transport:
        client = McpClient(transport, "test", LATEST_MODERN)
        for _ in range(2):
            with pytest.raises(ProtocolError) as caught:
                await client.call_tool("t", {})
            assert caught.value.code == CONNECTION_CLOSED


async def test_a_command_that_does_not_exist_raises(tmp_path):
    words = [str(tmp_path / "nothing")]
    with pytest.raises(OSError, match="nothing"):
        async with open_command(words, env={}, folder=tmp_path, errors=sys.__stderr__):
            pass


async def test_only_the_variables_that_desktop_clients_pass_on_are_inherited(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "s3cret")
    program = f"""{SCRIPT}
say(id=hear()["id"], result={{"_meta": dict(os.environ)}})
hear()
"""
    async with opened(program, tmp_path, GIVEN="yes") as transport:
        result = await McpClient(transport, "test", LATEST_MODERN).call_tool("t", {})
    variables = result["_meta"]
    assert variables["GIVEN"] == "yes"
    assert "PATH" in variables
    assert "SECRET" not in variables


async def test_closing_stdin_ends_a_command_in_good_order(tmp_path):
    program = "import sys; sys.stdin.read(); open('ended', 'w').write('well')"
    async with opened(program, tmp_path):
        pass
    assert (tmp_path / "ended").read_text() == "well"


@pytest.mark.skipif(sys.platform == "win32", reason="processes of one group are POSIX's")
async def test_what_a_command_has_started_ends_with_it(tmp_path):
    program = f"""{SCRIPT}
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
say(id=hear()["id"], result={{"pids": [child.pid]}})
hear()
"""
    async with opened(program, tmp_path) as transport:
        answer = await transport.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    await wait_until_ended(answer["result"]["pids"])


@pytest.mark.skipif(sys.platform == "win32", reason="processes of one group are POSIX's")
async def test_a_command_that_stays_is_killed_with_all_that_it_started(tmp_path):
    child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    program = f"""{SCRIPT}
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", {child!r}])
say(id=hear()["id"], result={{"pids": [os.getpid(), child.pid]}})
time.sleep(60)
"""
    async with opened(program, tmp_path, end_limit=0.2) as transport:
        answer = await transport.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    await wait_until_ended(answer["result"]["pids"])


async def wait_until_ended(pids):
    with anyio.fail_after(TIMEOUT):
        while any(map(is_running, pids)):  # noqa: ASYNC110 - others reap killed processes
            await anyio.sleep(0.01)


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
