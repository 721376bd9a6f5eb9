"""A real Jupyter Server that culls idle kernels: those whose tools are called count as used."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
from jupyter_servers import LOOK, jupyter_server
from live import TIMEOUT, Link, text_of, until

from mcp_notebook.discovery.records import list_live_records

IDLE = 15
"""Seconds; a kernel that takes longer to start is culled, too."""
CULLING = [
    f"--MappingKernelManager.{option}"
    for option in (f"cull_idle_timeout={IDLE}", "cull_interval=1", "cull_connected=True")
]
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


@pytest.mark.slow
@pytest.mark.parametrize("cull_busy", [False, True])
def test_kernels_whose_tools_are_called_are_not_culled_and_others_are(home, cull_busy):
    release = home / "release"
    with (
        jupyter_server(home, *CULLING, f"--MappingKernelManager.cull_busy={cull_busy}") as server,
        ExitStack() as stack,
    ):

        def start() -> tuple[str, Link]:
            before = {record.id for record in list_live_records(records)}
            kernel_id = server.start_kernel(*TOOLS.split("\n", 1))
            (record,) = [rec for rec in list_live_records(records) if rec.id not in before]
            return kernel_id, stack.enter_context(Link(record))

        records = home / ".mcp-notebook" / "kernels"
        # Each is used from its start on: starting the others takes longer than the server waits.
        running, long_link = start()
        long_link.start("run_until", release=str(release))
        called, link = start()
        with calling(link):
            until(lambda: server.states()[running] == "busy", every=LOOK)
            unused, _ = start()
            assert unused in server.states()
            until(lambda: unused not in server.states(), every=LOOK)
            states = server.states()
        assert states == {running: "busy", called: "idle"}, "the unused kernel was younger"
        release.touch()
        assert text_of(long_link.result()) == "released"
        until(lambda: not server.states(), every=LOOK)
