"""A real Jupyter Server that culls idle kernels: those whose tools are called count as used."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from jupyter_client.blocking import BlockingKernelClient
from live import TIMEOUT, Link, LiveKernel, kernel_env, text_of

from mcp_notebook.discovery import list_live_records

TOKEN = "token-of-the-tests-0123456789abcdef"
IDLE = 15
"""Seconds; a kernel that takes longer to start is culled, too."""
LOOK = 0.1
TOOLS = '''%load_ext mcp_notebook
%%mcp_tool
import pathlib, time

def add(a: int, b: int) -> int:
    """Add."""
    return a + b

def run_until(release: str) -> str:
    """Run until a file is there."""
    while not pathlib.Path(release).exists():
        time.sleep(0.01)
    return "released"
'''


def wait_for(look: Callable[[], Any]) -> Any:
    """Return what it finds, as soon as it finds anything."""
    deadline = time.monotonic() + TIMEOUT
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(LOOK)
    return found


class Server:
    """A Jupyter Server, seen through its REST API."""

    def __init__(self, http: httpx2.Client, home: Path) -> None:
        self.http = http
        self.home = home

    def start_kernel(self) -> str:
        """Start a kernel with tools, leave it alone, and return its id."""
        kernel_id = self.http.post("/api/kernels").raise_for_status().json()["id"]
        client = BlockingKernelClient(
            connection_file=str(self.home / "runtime" / f"kernel-{kernel_id}.json")
        )
        client.load_connection_file()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=TIMEOUT)
            kernel = LiveKernel(None, client, self.home)
            for cell in TOOLS.split("\n", 1):
                kernel.ok(cell)
        finally:
            client.stop_channels()
        return kernel_id

    def states(self) -> dict[str, str]:
        """Return what the server takes its kernels for."""
        kernels = self.http.get("/api/kernels").raise_for_status().json()
        return {kernel["id"]: kernel["execution_state"] for kernel in kernels}


@contextmanager
def calling(link: Link) -> Iterator[None]:
    """Call a kernel's tool again and again for the length of the block."""
    is_over = threading.Event()

    def call() -> None:
        while not is_over.wait(LOOK):
            assert text_of(link.call("add", a=1, b=2)) == "3"

    with ThreadPoolExecutor(1) as threads:
        calls = threads.submit(call)
        try:
            yield
        finally:
            is_over.set()
            calls.result(TIMEOUT)


@contextmanager
def jupyter_server(home: Path, *options: str) -> Iterator[Server]:
    """Run a Jupyter Server that culls kernels, on loopback."""
    env = kernel_env(home) | {
        "JUPYTER_NO_CONFIG": "1",
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
    }
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"]
    settings = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": 0,
        "ServerApp.root_dir": home,
        "IdentityProvider.token": TOKEN,
        "MappingKernelManager.cull_idle_timeout": IDLE,
        "MappingKernelManager.cull_interval": 1,
        "MappingKernelManager.cull_connected": True,
    }
    command += [f"--{name}={value}" for name, value in settings.items()]
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *options], env=env, cwd=home, stdin=subprocess.DEVNULL, stderr=log
        )
    try:
        with httpx2.Client(
            base_url=wait_for(lambda: url_of(process, home)),
            headers={"Authorization": f"token {TOKEN}"},
            timeout=TIMEOUT,
            trust_env=False,
        ) as http:
            yield Server(http, home)
    finally:
        process.terminate()
        process.wait(TIMEOUT)


def url_of(process: subprocess.Popen[bytes], home: Path) -> str | None:
    """Return where a server listens, once it does."""
    assert process.poll() is None, (home / "server.log").read_text()
    try:
        return json.loads((home / "runtime" / f"jpserver-{process.pid}.json").read_text())["url"]
    except (FileNotFoundError, json.JSONDecodeError):  # not there yet; half written
        return None


@pytest.mark.slow
@pytest.mark.parametrize("cull_busy", [False, True])
def test_kernels_whose_tools_are_called_are_not_culled_and_others_are(home, cull_busy):
    release = home / "release"
    with (
        jupyter_server(home, f"--MappingKernelManager.cull_busy={cull_busy}") as server,
        ExitStack() as stack,
    ):

        def start() -> tuple[str, Link]:
            before = {record.id for record in list_live_records(records)}
            kernel_id = server.start_kernel()
            (record,) = [rec for rec in list_live_records(records) if rec.id not in before]
            return kernel_id, stack.enter_context(Link(record))

        records = home / ".mcp-notebook" / "kernels"
        # Each is used from its start on: starting the others takes longer than the server waits.
        running, long_link = start()
        long_link.start("run_until", release=str(release))
        called, link = start()
        with calling(link):
            wait_for(lambda: server.states()[running] == "busy")
            unused, _ = start()
            assert unused in server.states()
            wait_for(lambda: unused not in server.states())
            states = server.states()
        assert states == {running: "busy", called: "idle"}, "the unused kernel was younger"
        release.touch()
        assert text_of(long_link.result()) == "released"
        wait_for(lambda: not server.states())
