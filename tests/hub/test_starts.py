"""Servers and notebooks of a real JupyterHub that `mcp-notebook connect` starts."""

import json
import re
import subprocess

import anyio
import pytest
from bridges import INITIALIZE, bridge
from clients import COMMAND, text_of
from hubs import jupyter_hub
from listing import list_tools
from mcp import Client, StdioServerParameters
from notebook_files import write_notebook

# Each starts a hub, and a server in it twice.
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]

CELLS = (
    "%load_ext mcp_notebook",
    "with open('runs.txt', 'a') as file:\n    print('run', file=file)",
    '%%mcp_tool\ndef double(n: int) -> int:\n    "Double."\n    return 2 * n',
)


@pytest.fixture(scope="module")
def hub(module_home):
    """A hub whose users have no servers, and a notebook in the folder of each."""
    with jupyter_hub(module_home) as hub:
        for name in ("ada", "bob", "cleo", "eve"):
            hub.http.post(f"users/{name}").raise_for_status()
            (module_home / name).mkdir()
            write_notebook(module_home / name / "rain.ipynb", *CELLS)
        yield hub


def make_token(hub, name):
    """Make a token that may start the server of a user, and use it."""
    return hub.make_token(name, f"servers!user={name}", f"access:servers!user={name}")


def command(hub, name, token, *options, notebook="rain.ipynb"):
    """Return how a client starts the command for the page of a notebook."""
    page = f"{hub.url}user/{name}/lab/tree/{notebook}"
    arguments = [*COMMAND[1:], "connect", page, "--token-file", "env:HUB_TOKEN", *options]
    env = {"HOME": str(hub.home), "HUB_TOKEN": token}
    return StdioServerParameters(command=COMMAND[0], args=arguments, env=env)


async def test_one_line_leads_from_no_server_to_a_tool_and_again_after_the_hub_has_stopped_it(hub):
    name = "bob"
    token = make_token(hub, name)
    with hub.server(name, token) as server:
        async with Client(command(hub, name, token, "--run"), mode="auto") as client:
            assert {tool.name for tool in await list_tools(client)} == {"double"}
            assert text_of(await client.call_tool("double", {"n": 4})) == "8"
            assert len(server.states()) == 1
            await anyio.to_thread.run_sync(hub.stop_server, name)
            assert text_of(await client.call_tool("double", {"n": 5})) == "10"
            assert len(server.states()) == 1
    runs = hub.home / name / "runs.txt"
    assert runs.read_text() == "run\nrun\n"
    await anyio.to_thread.run_sync(hub.stop_server, name)


async def test_two_clients_at_once_start_one_server_and_one_kernel(hub):
    token = make_token(hub, "cleo")
    answers = []

    async def use():
        async with Client(command(hub, "cleo", token, "--run"), mode="auto") as client:
            while not {tool.name for tool in await list_tools(client)}:  # noqa: ASYNC110
                await anyio.sleep(0.1)
            answers.append(text_of(await client.call_tool("double", {"n": 4})))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(use)
        tasks.start_soon(use)
    assert answers == ["8", "8"]
    with hub.server("cleo", token) as server:
        assert len(server.states()) == 1
    assert (hub.home / "cleo" / "runs.txt").read_text() == "run\n"


def test_without_run_no_cell_runs_and_it_is_said_how(hub):
    folder = hub.home / "cleo"
    (folder / "snow.ipynb").write_bytes((folder / "rain.ipynb").read_bytes())
    (folder / "runs.txt").unlink(missing_ok=True)
    page = f"{hub.url}user/cleo/lab/tree/snow.ipynb"
    env = {"HUB_TOKEN": make_token(hub, "cleo")}
    with bridge(hub.home, "connect", page, "--token-file", "env:HUB_TOKEN", env=env) as running:
        assert running.wait() == 1
        assert "or add --run to" in running.said
    assert not (folder / "runs.txt").exists()


@pytest.mark.parametrize(
    ("name", "scopes", "reason"),
    [
        (
            *("ada", ["access:servers!user=ada"]),
            r"is not running\..*may not start servers.*servers!user=ada",
        ),
        ("bob", ["servers!user=ada"], r"is the server of 'bob'.*that of 'ada'"),
        ("eve", ["servers!user=eve", "access:servers!user=eve"], r"did not start it.*No room"),
        ("nobody", ["servers!user=ada"], r"is the server of 'nobody'"),
        (
            *("cleo", ["servers!user=cleo", "access:servers!user=cleo"]),
            r"'none\.ipynb' cannot be opened.*does not exist",
        ),
    ],
)
def test_what_cannot_be_started_is_told_with_the_next_step(hub, name, scopes, reason):
    owner = scopes[0].partition("=")[2]
    token = hub.make_token(owner, *scopes)
    page = f"{hub.url}user/{name}/lab/tree/{'none' if name == 'cleo' else 'rain'}.ipynb"
    options = ["--token-file", "env:HUB_TOKEN", "--run"]
    env = {"HUB_TOKEN": token}
    with bridge(hub.home, "connect", page, *options, env=env, stdin=subprocess.PIPE) as running:
        running.send(json.dumps(INITIALIZE).encode())
        text = running.message()["error"]["message"]
        assert re.search(reason, text), text
        assert token not in running.said
        running.process.stdin.close()
        assert running.wait() == 1


def test_each_step_is_printed_and_sent_to_a_client_that_asks_for_progress(hub):
    token = make_token(hub, "ada")
    page = f"{hub.url}user/ada/lab/tree/rain.ipynb"
    options = ["--token-file", "env:HUB_TOKEN", "--run"]
    env = {"HUB_TOKEN": token}
    params = INITIALIZE["params"] | {"_meta": {"progressToken": "first"}}
    with bridge(hub.home, "connect", page, *options, env=env, stdin=subprocess.PIPE) as running:
        running.send(json.dumps(INITIALIZE | {"params": params}).encode())
        messages = []
        while "result" not in (message := running.message()):
            messages.append(message)
        running.process.stdin.close()
        assert running.wait() == 0
    steps = [message["params"] for message in messages]
    assert {step["progressToken"] for step in steps} == {"first"}
    values = [step["progress"] for step in steps]
    assert values == sorted(set(values))
    assert max(values) < 0, "the server's own progress comes later"
    texts = "\n".join(step["message"] for step in steps)
    assert texts.startswith("Starting the Jupyter server of ada on http://127.0.0.1:")
    assert "Code cell 3 of 3 of rain.ipynb ..." in texts
    assert all(step["message"] in running.said for step in steps)
    assert token not in running.said
