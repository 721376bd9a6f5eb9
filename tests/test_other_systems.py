"""Windows and macOS as far as they can be tried on another system (`pretended_system`).

The modules, kernels and bridges here are real, and lack what those systems lack.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from live import TIMEOUT, Link, kernel_env, live_kernel, record_of, text_of
from mcp import Client, StdioServerParameters
from notebook_files import write_notebook

from mcp_notebook.clients.client import Launch
from mcp_notebook.clients.installation import plan_installation, read_entries
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.discovery.records import list_live_records
from mcp_notebook.wire import messages

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="pretends on Linux to be another system"),
]

PRETENDED = Path(__file__).parent / "pretended_system"
LOAD = "%load_ext mcp_notebook"
ADD = '%%mcp_tool\ndef add(a: int, b: int) -> int:\n    "Add."\n    return a + b'
IMPORT_ALL = """
import importlib, pkgutil
import mcp_notebook
failed = {}
for module in pkgutil.walk_packages(mcp_notebook.__path__, "mcp_notebook."):
    try:
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    except Exception as error:
        failed[module.name] = str(error)
from mcp_notebook.kernel.link import endpoint
print(endpoint.sys.platform, hasattr(endpoint.os, "getuid"), failed)
"""


def _env(home, platform="win32"):
    return kernel_env(home) | {"PYTHONPATH": str(PRETENDED), "TESTS_PLATFORM": platform}


@asynccontextmanager
async def _connected(home, *arguments):
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "mcp_notebook", "stdio", *arguments], env=_env(home)
    )
    async with Client(server) as client:
        yield client


@pytest.fixture(scope="module")
def kernel(module_home):
    """A live notebook on a pretended Windows."""
    env = _env(module_home)
    with live_kernel(module_home, notebook="sales.ipynb", env=env, is_forked=False) as kernel:
        kernel.ok(LOAD)
        kernel.ok(ADD)
        yield kernel


@pytest.mark.slow
@pytest.mark.parametrize(
    ("platform", "expected"), [("win32", "win32 False {}"), ("darwin", "darwin True {}")]
)
def test_each_module_is_imported_without_what_the_system_lacks(home, platform, expected):
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        env=_env(home, platform),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == expected, done.stderr


def test_a_kernel_listens_on_the_loopback_interface_with_a_token(kernel):
    record = record_of(kernel)
    assert record.socket is None
    assert record.port
    assert record.token
    with Link(record) as link:
        assert text_of(link.call("add", a=2, b=3)) == "5"


async def test_a_client_over_stdio_calls_the_tools_of_an_open_notebook(kernel):
    async with _connected(kernel.home) as client:
        result = await client.call_tool("add", {"a": 2, "b": 40})
        assert result.content[0].text == "42"


def test_a_running_call_is_stopped_without_signals_to_threads(kernel):
    kernel.ok(
        "%%mcp_tool\ndef spin():\n    'Spin.'\n    print('spins', flush=True)\n    while True: pass"
    )
    with Link(record_of(kernel)) as link:
        call = link.start("spin", progress=True)
        link.receive_until(lambda message: "spins" in repr(message))
        link.send(messages.Cancel(id=call))
        assert "spins" in text_of(link.result())
        assert link.call("add", a=1, b=1).content[0].text == "2"


def test_a_tool_that_would_be_forked_says_what_to_do_instead(kernel):
    output = kernel.run("%%mcp_tool --read-only --run fork\ndef copy():\n    'Copy.'")
    assert "needs Linux or macOS" in output.error
    assert "--run thread" in output.error


@pytest.mark.parametrize("cell", ["%mcp status", "%mcp list", "%mcp call add a=1 b=2", "%mcp log"])
def test_the_line_magic_works(kernel, cell):
    kernel.ok(cell)


async def test_a_notebook_is_run_headless(home):
    write_notebook(home / "sums.ipynb", LOAD, ADD)
    async with _connected(home, str(home / "sums.ipynb")) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text == "3"
        (record,) = list_live_records(home / ".mcp-notebook" / "kernels")
        assert (record.socket, record.owner) == (None, "bridge")


def test_an_http_bridge_is_started_found_and_stopped_from_the_notebook(kernel):
    shown = kernel.ok("%mcp serve").text
    assert "http://127.0.0.1:" in shown
    assert "stopped" in kernel.ok("%mcp serve --stop").text.lower()


def test_the_bridge_of_a_jupyter_server_listens_on_the_loopback_interface(home):
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "mcp_notebook.cli.jupyter_bridge"],
        env=_env(home) | {"MCP_NOTEBOOK_TOKEN": "secret-of-the-test"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    address = json.loads(process.stdout.readline())
    assert address.keys() == {"port"}
    process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0


def test_an_http_bridge_ends_when_it_is_interrupted(home):
    process = subprocess.Popen(
        [sys.executable, "-m", "mcp_notebook", "serve", "--port", "0"],
        env=_env(home),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if "http://127.0.0.1:" in line:
            break
    os.kill(process.pid, signal.SIGINT)
    said = process.communicate(timeout=TIMEOUT)[1]
    assert "Traceback" not in said
    assert process.returncode in (0, 130)


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda c: c.name)
def test_paths_with_backslashes_are_in_settings_of_clients_as_they_are(client, tmp_path):
    python = r"C:\Users\Ada Lovelace\new\python.exe"
    notebook = r"C:\Users\Ada Lovelace\täglich\Umsätze \"2\".ipynb"
    launch = Launch(
        command=python,
        arguments=("stdio", notebook),
        env={"MCP_NOTEBOOK_HOME": r"C:\temp"},
        runs_notebooks=True,
    )
    file = tmp_path / "settings"
    change = plan_installation(client, file, "notebook", launch)
    file.write_text(change.after, encoding="utf-8")
    entry = read_entries(client, file)["notebook"]
    assert entry == client.make_entry(launch)
    assert repr(python) in repr(entry)
    assert repr(notebook) in repr(entry)
