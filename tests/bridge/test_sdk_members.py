"""Releases of MCP's SDK that call their private members otherwise than the one that is installed.

A bridge in a process of its own finds the SDK so: its modules are changed while they are imported.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from bridges import INITIALIZE, PING, TOKEN, bridge, http_bridge
from clients import ERAS, over_http

from mcp_notebook import bridge as package
from mcp_notebook.bridge.access.caller import EVERYTHING
from mcp_notebook.bridge.access.token_store import TokenStore

pytestmark = pytest.mark.anyio

OF_THE_SHORT_WAY = (
    *("_server_instances", "_task_group", "_admit_session", "_serve_opening_request"),
    *("_requests_in_flight", "_request_streams", "_read_stream_writer"),
)
OTHERS = ("_session_owners", "_connection")
"""Used by no name, or not at all."""
QUICK = ("_server_instances",)
"""Tried by default: a bridge for each takes two seconds of a processor."""
LAUNCHER = """
import re, sys
from importlib.machinery import PathFinder, SourceFileLoader

pattern, replacement = sys.argv.pop(1).encode(), sys.argv.pop(1).encode()

class Loader(SourceFileLoader):
    def get_code(self, fullname):
        source = self.get_data(self.path)
        changed = re.sub(pattern, replacement, source)
        if changed == source:
            return super().get_code(fullname)
        return self.source_to_code(changed, self.path)

class Finder:
    def find_spec(name, path, target=None):
        spec = PathFinder.find_spec(name, path, target) if name.startswith("mcp.") else None
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec

sys.meta_path.insert(0, Finder)
from mcp_notebook.__main__ import main
sys.exit(main())
"""
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
MODERN_LIST = LIST | {"params": {"_meta": META}}


def renaming(member):
    """Return the command with an SDK in which a member has another name."""
    return changing(rf"\b{member}\b", "_renamed_by_a_release")


def changing(pattern, replacement):
    """Return the command with an SDK in which something else is written."""
    return [sys.executable, "-c", LAUNCHER, pattern, replacement]


async def check_that_sessions_are_their_callers(url, guest):
    """Open a session with one token, try it with another one, and end it."""
    accept = {"Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(headers=accept, timeout=60) as http:

        async def ask(token, message, session="", method="POST", **headers):
            headers |= {"Authorization": f"Bearer {token}", "Mcp-Session-Id": session}
            headers = {name: value for name, value in headers.items() if value}
            return await http.request(method, url, headers=headers, json=message)

        opened = await ask(TOKEN, INITIALIZE)
        session = opened.headers["mcp-session-id"]
        assert (await ask(TOKEN, LIST, session)).status_code == 200
        # In the later era, a session's id says nothing: nor does it make a session anybody's.
        modern = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
        assert (await ask(guest, MODERN_LIST, session, **modern)).status_code == 200
        for message, method in ((LIST, "POST"), (PING, "POST"), (None, "GET"), (None, "DELETE")):
            refused = await ask(guest, message, session, method)
            assert (refused.status_code, "Session not found" in refused.text) == (404, True)
        assert (await ask(TOKEN, PING, session)).status_code == 200
        assert (await ask(TOKEN, None, session, "DELETE")).status_code == 200
        assert (await ask(TOKEN, PING, session)).status_code == 404


@pytest.fixture
def guest(home):
    """A token of another caller."""
    return TokenStore(home / ".mcp-notebook" / "tokens.json").add("guest", EVERYTHING)


@pytest.mark.slow
@pytest.mark.parametrize(
    "member",
    [
        pytest.param(member, marks=() if member in QUICK else pytest.mark.slow)
        for member in (*OF_THE_SHORT_WAY, *OTHERS)
    ],
)
async def test_a_release_without_a_private_member_serves_more_slowly_and_guards_its_sessions(
    home, guest, member
):
    with http_bridge(home, command=renaming(member)) as here:
        for era in ERAS:
            async with over_http(here.url, era) as client:
                assert (await client.list_tools()).tools == []
        await check_that_sessions_are_their_callers(here.url, guest)
        status, _ = here.end()
    assert status == 0
    assert here.said.count("which is slower") == (member in OF_THE_SHORT_WAY)
    assert (f"has no {member}," in here.said) == (member in OF_THE_SHORT_WAY)
    assert "Traceback" not in here.said


@pytest.mark.slow
async def test_a_release_that_compares_no_callers_lets_nobody_into_anothers_session(home, guest):
    comparison = r"requestor != self\._session_owners\.get\(request_mcp_session_id\)"
    with http_bridge(home, command=changing(comparison, "False")) as here:
        await check_that_sessions_are_their_callers(here.url, guest)


@pytest.mark.slow
def test_so_it_does_over_stdio(home):
    command = renaming("_connection")
    with bridge(home, "stdio", command=command, stdin=subprocess.PIPE) as running:
        for message in (INITIALIZE, LIST, PING, LIST | {"method": "skills/list"}):
            running.send(json.dumps(message).encode())
            assert "result" in running.message()
        running.process.stdin.close()
        assert running.wait() == 0
    assert "which is slower" not in running.said


def test_no_other_private_member_of_the_sdk_is_used():
    used, defined = set(), set()
    for path in Path(package.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    defined.add(name)
                case ast.Attribute(attr=name):
                    used.add(name)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    defined.add(name)
                case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                    defined.add(name)
    private = {name for name in used - defined if name.startswith("_") and name[1] != "_"}
    assert private <= {*OF_THE_SHORT_WAY, *OTHERS}
