"""Tools of a notebook on a real JupyterHub, called from outside through its proxy."""

import re

import anyio
import httpx2
import pytest
from bridges import bridge
from clients import COMMAND, over_http, text_of
from file_events import appears
from hubs import jupyter_hub
from listing import list_tools
from live import TIMEOUT
from mcp import Client, StdioServerParameters

pytestmark = pytest.mark.anyio

TOOLS = '''%%mcp_tool
import pathlib, time
from mcp_notebook import Context

def double(n: int) -> int:
    """Double."""
    return 2 * n

def count_to(n: int, release: str, ctx: Context) -> str:
    """Count, and wait after each number for a file."""
    for i in range(n):
        ctx.progress(i + 1, n)
        while not pathlib.Path(f"{release}-{i}").exists():
            time.sleep(0.01)
    return "counted"

def wait_to_be_stopped(seen: str) -> None:
    """Wait for ever."""
    pathlib.Path(f"{seen}-began").touch()
    try:
        while True:
            time.sleep(0.01)
    except KeyboardInterrupt:
        pathlib.Path(f"{seen}-stopped").touch()
        raise
'''
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture(scope="module")
def hub(module_home):
    """A hub with two users; the first one's notebook has run."""
    with jupyter_hub(module_home) as hub:
        hub.add_users("ada", "bob")
        with hub.server("ada", hub.make_token("ada", "access:servers!user=ada")) as server:
            server.start_kernel("%load_ext mcp_notebook", TOOLS, path="rain.ipynb")
        yield hub


@pytest.fixture(scope="module")
def token(hub):
    """A token that opens the first user's server, and nothing else."""
    return hub.make_token("ada", "access:servers!user=ada")


@pytest.mark.parametrize("path", ["mcp", "mcp-notebook/rain"])
async def test_tools_are_called_with_a_token_for_the_users_server_alone(hub, token, era, path):
    async with over_http(f"{hub.url}user/ada/{path}", era, token=token) as client:
        names = {tool.name for tool in await list_tools(client)}
        assert names == {"double", "count_to", "wait_to_be_stopped"}
        assert text_of(await client.call_tool("double", {"n": 21})) == "42"


async def test_progress_arrives_through_the_proxy_while_the_call_runs(hub, token, era, tmp_path):
    release = tmp_path / "release"
    seen = []

    async def note(progress, total, message):
        seen.append(progress)
        # Without this, the next one would not come.
        await anyio.Path(f"{release}-{int(progress) - 1}").touch()

    async with over_http(f"{hub.url}user/ada/mcp-notebook", era, token=token) as client:
        arguments = {"n": 3, "release": str(release)}
        result = await client.call_tool("count_to", arguments, progress_callback=note)
    assert text_of(result) == "counted"
    assert seen == [1, 2, 3]


async def test_a_cancelled_call_is_stopped_through_the_proxy(hub, token, era, tmp_path):
    seen = tmp_path / "seen"

    async with (
        over_http(f"{hub.url}user/ada/mcp-notebook", era, token=token) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(client.call_tool, "wait_to_be_stopped", {"seen": str(seen)})
        await appears(tmp_path / "seen-began")
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await appears(tmp_path / "seen-stopped")


def test_the_token_of_another_user_gets_403_and_a_wrong_one_401(hub):
    def ask(token):
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{hub.url}user/ada/mcp-notebook"
        return httpx2.post(url, json=LIST, headers=headers, trust_env=False, timeout=TIMEOUT)

    refusal = ask(hub.make_token("bob", "access:servers!user=bob"))
    assert refusal.status_code == 403
    assert refusal.json()["message"] == "user bob is not allowed."
    assert ask("wrong").status_code == 401


# -- through `mcp-notebook connect` ----------------------------------------------------------------


async def test_a_client_that_only_starts_commands_uses_the_page_of_a_notebook(hub, token, era):
    page = f"{hub.url}user/ada/lab/tree/rain.ipynb"
    env = {"HOME": str(hub.home), "HUB_TOKEN": token}
    arguments = [*COMMAND[1:], "connect", page, "--token-file", "env:HUB_TOKEN"]
    server = StdioServerParameters(command=COMMAND[0], args=arguments, env=env)
    async with Client(server, mode=era) as client:
        assert text_of(await client.call_tool("double", {"n": 4})) == "8"


@pytest.mark.parametrize(
    ("page", "owner", "reason"),
    [
        ("user/ada/lab", "bob", r"does not accept the token.*/hub/token"),
        ("user/ada/lab", None, r"requires a token.*/hub/token"),
        ("user/cleo/lab", "cleo", r"is not running\. Start it in the browser, at http.*/hub/home"),
        ("hub/home", "ada", r"Open your server in the browser"),
    ],
)
def test_what_connect_says_about_a_hub(hub, page, owner, reason):
    hub.http.post("users/cleo")
    env = {}
    if owner is not None:
        env["HUB_TOKEN"] = hub.make_token(owner, f"access:servers!user={owner}")
    options = ["--token-file", "env:HUB_TOKEN"] if owner else []
    with bridge(hub.home, "connect", hub.url + page, *options, env=env) as running:
        assert running.wait() == 1
        assert re.search(reason, running.said), running.said
