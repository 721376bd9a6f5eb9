import json
import sys

import pytest
from bridges import INITIALIZE, TOKEN, ask, bridge
from endpoints import modern

AT_END = """
import atexit, sys
from mcp_notebook.__main__ import main
atexit.register(lambda: print("Loaded:", *sorted(sys.modules), file=sys.stderr))
main()
"""
COMMAND = [sys.executable, "-c", AT_END]
UNUSED = {
    "IPython",
    "cryptography",
    "httpx2",
    "jsonschema",
    "jupyter_client",
    "jwt",
    "mcp.client",
    "mcp.server.mcpserver",
    "nbclient",
    "nbformat",
    "numpy",
    "pandas",
    "python_multipart",
    "rich",
    "yaml",
}
COMMAND_LINE = {"typer"}
WEB_SERVER = {"click", "httptools", "uvicorn", "websockets"}
LIST = {"jsonrpc": "2.0", "id": "list", "method": "tools/list"}


def _read_loaded(running):
    return set(running.wait_said(r"Loaded: (.*)\n")[1].split())


def test_a_stdio_bridge_loads_no_web_server_no_client_and_nothing_of_headless_notebooks(home):
    with bridge(home, "stdio", command=COMMAND, stdin=-1) as running:
        running.send(json.dumps(INITIALIZE).encode())
        assert running.message()["id"] == "hello"
        running.send(json.dumps(LIST).encode())
        assert running.message()["result"]["tools"] == []
        running.send(json.dumps(LIST | {"method": "skills/list"}).encode())
        assert running.message()["result"]["skills"] == []
        running.process.stdin.close()
        assert running.wait() == 0
    loaded = _read_loaded(running)
    assert loaded & (UNUSED | WEB_SERVER | COMMAND_LINE) == set()
    assert "mcp.server.lowlevel.server" in loaded


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_a_stdio_bridge_lists_and_calls_without_the_sdk_and_pydantic(kernel, era):
    kernel.ok("%%mcp_tool\ndef add(a: int, b: int) -> int:\n    return a + b")
    kernel.ok("%%mcp_prompt ask(topic: str) --title Ask\nAsk about {topic}.")
    kernel.ok("%%mcp_resource data://rate\n1.5")
    kernel.ok("%%mcp_resource data://{name}\ndef look(name: str):\n    return name")
    call = {"name": "add", "arguments": {"a": 1, "b": 2}}
    requests = [("tools/list", {}), ("tools/call", call)]
    requests += [(f"{items}/list", {}) for items in ("prompts", "resources", "resources/templates")]
    with bridge(kernel.home, "stdio", command=COMMAND, stdin=-1) as running:
        if era == "handshake":
            running.send(json.dumps(INITIALIZE).encode())
            assert running.message()["id"] == "hello"
            running.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
            requests.append(("ping", {}))
        else:
            requests.append(("server/discover", {}))
        for method, params in requests:
            message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
            if era == "modern":
                message, _ = modern(message)
            running.send(json.dumps(message).encode())
            while "id" not in (answer := running.message()):
                assert answer["method"].endswith("/list_changed")
            assert "result" in answer, answer
            if method.endswith("/list"):
                assert any(answer["result"].values()), answer
            if method == "tools/call":
                assert answer["result"]["content"] == [{"type": "text", "text": "3"}]
        running.process.stdin.close()
        assert running.wait() == 0
    loaded = _read_loaded(running)
    assert loaded & {"pydantic", "importlib.metadata"} == set()
    sdk = {name for name in loaded if name.split(".")[0] in {"mcp", "mcp_types"}}
    names = {"mcp", "mcp.server", "mcp_types", "mcp_types.jsonrpc", "mcp_types.version"}
    assert sdk == names  # nothing but names


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_http_bridge_loads_no_client_and_nothing_of_headless_notebooks(home):
    environment = {"MCP_NOTEBOOK_TOKEN": TOKEN}
    with bridge(home, "serve", "--port", "0", command=COMMAND, env=environment) as running:
        assert ask(running.url).status == 200
        running.end()
    assert _read_loaded(running) & UNUSED == set()


@pytest.mark.slow
def test_what_a_bridge_leaves_out_is_there_for_who_asks_for_it(home):
    code = (
        "import mcp_notebook.bridge.server.sessions.sdk_import, mcp, sys;"
        "import mcp.server.session, mcp.types;"
        "assert 'mcp.client' not in sys.modules;"
        "from mcp import Client, MCPError;"
        "from mcp.server import MCPServer;"
        "import uvicorn, python_multipart;"
        "print(Client.__name__, MCPServer.__name__, mcp.types.Tool is mcp.Tool)"
    )
    with bridge(home, command=[sys.executable, "-c", code]) as running:
        assert running.line() == b"Client MCPServer True\n"
