"""A secret goes in by every way that there is, and comes out by none but the tool itself."""

import base64
import json
import subprocess
from urllib.parse import quote
from uuid import uuid4

import anyio
import pytest
from audit_lines import read_ends
from clients import HEADERS, http_client, over_http, tool_kernel
from forked_command import list_words
from live import TIMEOUT, kernel_env
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

pytestmark = pytest.mark.anyio

PASSWORD = f"pa/ss'{uuid4().hex}"
KEY = f"key+{uuid4().hex}"
PIN = uuid4().int % 10**12 + 10**12
DEFAULT = f"default-{uuid4().hex}"
FORMS = {
    form
    for text in (PASSWORD, KEY, str(PIN), DEFAULT)
    for form in (
        text,
        text[-24:],  # also in part
        repr(text)[1:-1],
        json.dumps(text)[1:-1],
        quote(text, safe=""),
        base64.b64encode(text.encode()).decode(),
    )
}
IMPORTS = """
import concurrent.futures, logging
from typing import Annotated
from pydantic import AfterValidator, BaseModel, SecretBytes, SecretStr
from mcp_notebook import Context, Secret, ToolError, mcp_tool
pool = concurrent.futures.ProcessPoolExecutor(1)
"""
CELLS = [
    IMPORTS,
    f'''%%mcp_tool --output-schema
class Login(BaseModel):
    user: str
    password: SecretStr

def _refuse(value):
    if value.user == "nobody":
        raise ValueError(f"{{value.user}} has no {{value.password.get_secret_value()}}")
    return value

def log_in(
    way: str, login: Annotated[Login, AfterValidator(_refuse)], keys: list[Secret[str]],
    pin: Secret[int], ctx: Context, other: SecretBytes = b"{DEFAULT}",
    spare: SecretStr = SecretStr("{DEFAULT}"),
) -> dict:
    """Log in, and say all that one should not."""
    said = " ".join(str(it.get_secret_value()) for it in (login.password, *keys[:1], pin))
    print("printed", said)
    print("piece by", "piece", *[repr(part) for part in said.split()])
    logging.getLogger("x").warning("logged %s", said)
    ctx.log(said)
    ctx.progress(1, 2, said)
    if way == "raise":
        raise OSError(f"401 for https://x/?{{said}}") from KeyError(said)
    if way == "tool error":
        raise ToolError(said)
    return {{"login": login, "keys": keys, "pin": pin, "length": len(said)}}
''',
    '''%%mcp_tool --read-only
def repeat(key: Secret[str]) -> Secret[str]:
    """Give it back."""
    return key
''',
    '''def measure(key: Secret[str]) -> int:
    """Measure it elsewhere."""
    if len(key.get_secret_value()) > 50:
        raise ValueError(key.get_secret_value())
    return len(key.get_secret_value())
mcp_tool(executor=pool)(measure)
''',
]


def arguments(way, **others):
    login = {"user": "ann", "password": PASSWORD}
    return {"way": way, "login": login, "keys": [KEY], "pin": PIN} | others


CALLS = [
    ("log_in", arguments("return")),
    ("log_in", arguments("raise")),
    ("log_in", arguments("tool error")),
    ("log_in", arguments("return", login={"user": 5, "password": PASSWORD})),
    ("log_in", arguments("return", login={"user": "nobody", "password": PASSWORD})),
    ("log_in", arguments("return", login=json.dumps({"user": 5, "password": PASSWORD}))),
    ("log_in", arguments("return", login=f"{PASSWORD} {KEY}")),
    ("log_in", arguments("return", login=[PASSWORD], keys=KEY, pin=KEY, other=KEY)),
    ("log_in", arguments("return", keys={"first": KEY}, pin=[PIN])),
    ("log_in", arguments("return", pni=PIN, loggin={"password": PASSWORD}, ways=KEY)),
    ("log_in", arguments("return", filling="x" * 300_000)),
    ("log_in", arguments(["return"], keys=[KEY] * 10_000)),
    ("repeat", {"key": KEY}),
    ("measure", {"key": KEY}),
    ("measure", {"key": KEY * 3}),
    ("no_such_tool", {"key": KEY, "password": PASSWORD}),
]
COMMANDS = [
    ["call", "log_in", "--json", json.dumps(arguments("raise"))],
    ["call", "log_in", "--json", json.dumps(arguments("return", login=PASSWORD))],
    ["call", "repeat", f"key={KEY}"],
    ["list"],
    ["list", "--json"],
]


@pytest.fixture(scope="module")
def kernel(module_home):
    """A live notebook with tools that take secrets, and its cells' outputs."""
    with tool_kernel(module_home) as kernel:
        kernel.said = [kernel.ok(cell) for cell in CELLS]
        yield kernel


def find_secrets(text):
    return sorted(form for form in FORMS if form in text)


async def use(client, messages):
    """Make all calls; put all that comes into a list."""

    async def hear(*parts):
        messages.append(str(parts))

    messages.append((await client.list_tools()).model_dump_json())
    for tool, given in CALLS:
        try:
            result = await client.call_tool(tool, given, progress_callback=hear)
            messages.append(result.model_dump_json())
        except MCPError as error:
            messages.append(f"{error!r} {error.error}")


def write_wrong_requests():
    """Return requests that are wrong before any tool's schema is asked."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    given = {"name": "repeat", "arguments": {"key": KEY}, "_meta": meta}
    return [
        json.dumps(call | {"params": given | {"arguments": [KEY]}}),
        json.dumps(call | {"params": given | {"arguments": KEY}}),
        json.dumps(call | {"params": given | {"name": [KEY]}}),
        json.dumps(call | {"params": [KEY]}),
        json.dumps([call | {"params": given}]),
        json.dumps(call | {"params": given})[:-1],
        json.dumps(call | {"params": given | {"arguments": {"key": [KEY] * 100_000}}})[:-2],
        json.dumps(call | {"params": given | {"_meta": meta | {"progressToken": [KEY]}}}),
    ]


def send_by_hand(env):
    """Send wrong requests over stdio; return what comes."""
    done = subprocess.run(
        list_words("stdio"),
        input="\n".join([*write_wrong_requests(), ""]).encode(),
        env=env,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    return (done.stdout + done.stderr).decode()


@pytest.mark.slow
async def test_a_secret_comes_out_nowhere(kernel, module_home, tmp_path):
    messages: list[str] = [str(output) for output in kernel.said]

    async def hear(message):
        messages.append(str(message))

    env = kernel_env(module_home) | {
        "MCP_NOTEBOOK_AUDIT": "full",
    }
    # Over stdio, in the older era.
    options = {"logging_callback": hear, "message_handler": hear}
    with (tmp_path / "stderr").open("w+") as errors:
        program, *words = list_words("stdio")
        server = StdioServerParameters(command=program, args=words, env=env)
        async with Client(stdio_client(server, errlog=errors), mode="legacy", **options) as client:
            with pytest.warns(match="deprecated"):
                await client.set_logging_level("debug")
            await use(client, messages)
        errors.seek(0)
        messages.append(errors.read())
    # Over HTTP, in the newer one, from the notebook.
    said = await anyio.to_thread.run_sync(kernel.ok, "%env MCP_NOTEBOOK_AUDIT=full\n%mcp serve")
    url = next(word for word in said.text.split() if word.startswith("http://"))
    token = (module_home / ".mcp-notebook" / "token").read_text().strip()
    async with over_http(url, "auto", token=token, log_level="debug", **options) as client:
        await use(client, messages)
    headers = HEADERS | {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
    }
    async with http_client(headers=headers) as http:
        answers = [await http.post(url, content=request) for request in write_wrong_requests()]
    messages += [answer.text for answer in answers]
    messages.append(await anyio.to_thread.run_sync(send_by_hand, env))
    for line in (
        "status",
        "list",
        f"call repeat key='{KEY}'",
        f"call measure {KEY}",
        f"call measure '{KEY}",
    ):
        code = f"get_ipython().run_line_magic('mcp', {line!r})"
        messages.append(str(await anyio.to_thread.run_sync(kernel.run, code)))
    messages.append(str(await anyio.to_thread.run_sync(kernel.ok, "%mcp serve --stop")))
    for command in COMMANDS:
        done = await anyio.run_process(list_words(*command), env=env, check=False)
        messages.append((done.stdout + done.stderr).decode())

    everything = "\n".join(messages)
    assert {message: find_secrets(message) for message in messages if find_secrets(message)} == {}
    assert everything.count('"length":') > 1  # the tools had the secrets
    assert "OSError: 401 for https://x/?**********" in everything
    files = {path for path in module_home.rglob("*") if path.is_file()}
    log = json.dumps(read_ends(module_home / ".mcp-notebook" / "audit.jsonl"))
    assert log.count('"tool": "log_in"') >= 20
    assert {path.name for path in files} >= {"bridge.log", "token"}
    leaks = {
        path.relative_to(module_home): found
        for path in files
        if (found := find_secrets(path.read_text(errors="replace")))
    }
    assert leaks == {}
