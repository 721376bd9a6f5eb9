"""The bridge lives as long as its server, however that ends."""

import logging
import os
import signal
import struct
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest
from bridges import INITIALIZE
from clients import over_http, text_of
from file_events import appears
from jupyter_servers import LOOK, TOKEN, jupyter_server
from live import TIMEOUT, until

from mcp_notebook.jupyter.bridge_process import BridgeProcess

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

WAIT = '''%%mcp_tool
import pathlib, time

def wait(began: str) -> None:
    """Wait for ever."""
    pathlib.Path(began).touch()
    while True:
        time.sleep(0.01)
'''


async def test_a_server_that_is_stopped_answers_the_running_call_and_takes_its_bridge_along(home):
    with jupyter_server(home) as server:
        server.start_kernel("%load_ext mcp_notebook", WAIT, path="a.ipynb")
        assert not server.find_bridges(), "nobody has asked yet"
        async with over_http(f"{server.url}mcp-notebook", "auto", token=TOKEN) as client:
            answers = []

            async def call():
                answers.append(await client.call_tool("wait", {"began": str(home / "began")}))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await appears(home / "began")
                (bridge,) = server.find_bridges()
                server.process.terminate()
            (answer,) = answers
            assert answer.is_error
            assert "The kernel was shut down." in text_of(answer)
        await anyio.to_thread.run_sync(until, lambda: not bridge.is_running())


async def test_a_server_that_is_killed_leaves_no_bridge(home):
    with jupyter_server(home) as server:
        async with over_http(f"{server.url}mcp-notebook", "auto", token=TOKEN) as client:
            assert not (await client.list_tools()).tools
        (bridge,) = server.find_bridges()
        os.kill(server.pid, signal.SIGKILL)
        await anyio.to_thread.run_sync(until, lambda: not bridge.is_running())


@pytest.mark.skipif(os.name == "nt", reason="it has no socket")
async def test_a_bridge_that_is_killed_leaves_no_folder(home):
    with jupyter_server(home) as server:
        async with over_http(f"{server.url}mcp-notebook", "auto", token=TOKEN) as client:
            assert not (await client.list_tools()).tools
            (bridge,) = server.find_bridges()
            folder = Path(bridge.cmdline()[-1])
            assert os.listdir(folder) == ["bridge.sock"]  # noqa: PTH208
            bridge.kill()
            await anyio.to_thread.run_sync(until, lambda: not folder.exists())
        async with over_http(f"{server.url}mcp-notebook", "auto", token=TOKEN):
            (bridge,) = server.find_bridges()
            folder = Path(bridge.cmdline()[-1])
            assert folder.exists()
        os.kill(server.pid, signal.SIGKILL)
        await anyio.to_thread.run_sync(until, lambda: not folder.exists())


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into a pipe")
def test_a_bridge_that_hangs_does_not_keep_its_server_from_ending(home):
    with jupyter_server(home) as server:
        accept = {"Accept": "application/json, text/event-stream"}
        server.http.post("mcp", json=INITIALIZE, headers=accept).raise_for_status()
        (bridge,) = server.find_bridges()
        bridge.suspend()
        try:
            with Path(f"/proc/{bridge.pid}/fd/0").open("rb", buffering=0) as pipe:
                server.http.post("api/kernels").raise_for_status()
                until(lambda: count_unread(pipe), every=LOOK)
            server.process.terminate()
            server.process.wait(TIMEOUT)
        finally:
            bridge.resume()


def count_unread(pipe):
    """Return how many bytes wait in a pipe."""
    import fcntl  # noqa: PLC0415 - not on Windows
    import termios  # noqa: PLC0415

    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


@pytest.mark.skipif(os.name == "nt", reason="processes are stopped by signals")
async def test_no_request_overtakes_the_report_that_a_kernel_has_ended(home, settings, monkeypatch):
    monkeypatch.setenv("HOME", str(home))
    kernels = ["first"]
    bridge = BridgeProcess(lambda: kernels, settings, logging.getLogger())
    await bridge.connect()
    bridge._watch.stop()
    connected = anyio.Event()

    async def connect():
        await bridge.connect()
        connected.set()

    with bridge._process as process:
        try:
            psutil.Process(process.pid).suspend()
            kernels.clear()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(connect)
                with anyio.move_on_after(0.5):
                    await connected.wait()
                assert not connected.is_set(), "the bridge has not read it"
                psutil.Process(process.pid).resume()
            assert connected.is_set()
        finally:
            psutil.Process(process.pid).resume()
