"""A notebook that is renamed in Jupyter has its new name for everybody at once."""

import json
from pathlib import PurePosixPath

import anyio
import anyio.to_thread
import pytest
from clients import Changes, over_http
from file_events import appears
from jupyter_servers import HEADERS, TOKEN, close_websocket
from live import TIMEOUT
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

pytestmark = pytest.mark.anyio

TOOLS = '''%%mcp_tool --run thread
def measure(text: str) -> int:
    """As in the other notebooks: so its name has the notebook's."""
    return len(text)
'''
CONFIRMED = '''%%mcp_tool --run thread --confirm
def delete_all() -> str:
    """Delete all."""
    return "deleted"
'''
BUSY = """import pathlib, time
pathlib.Path({began!r}).touch()
while not pathlib.Path({end!r}).exists(): time.sleep(0.01)"""


@pytest.fixture
def anyio_backend():
    return "asyncio"  # tornado's client


@pytest.mark.parametrize(
    ("source", "to"),
    [("first/old.ipynb", "first/new.ipynb"), ("second/old.ipynb", "other/new.ipynb")],
    ids=["renamed", "moved"],
)
async def test_clients_panel_and_consent_know_its_new_name_while_a_cell_runs(
    server, tmp_path, source, to
):
    names = Changes()
    for path in {str(PurePosixPath(each).parent) for each in (source, to)}:
        server.http.put(f"api/contents/{path}", json={"type": "directory"}).raise_for_status()
    notebook = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    what = {"type": "notebook", "content": notebook}
    server.http.put(f"api/contents/{source}", json=what).raise_for_status()
    session = {"path": source, "name": "old.ipynb", "type": "notebook", "kernel": {}}
    kernel = (
        server.http.post("api/sessions", json=session).raise_for_status().json()["kernel"]["id"]
    )
    server.run(kernel, "%load_ext mcp_notebook", TOOLS, CONFIRMED)
    url = server.url.replace("http", "ws", 1) + "mcp-notebook/api/changes"
    socket = await websocket_connect(HTTPRequest(url, headers=HEADERS))
    state = {}

    async def see(is_so):
        while not is_so(state):
            said = json.loads(await socket.read_message())
            if said.get("kernel") == kernel:
                state.update(said["changes"] or {})

    began, end = tmp_path / "began", tmp_path / "end"
    cell = BUSY.format(began=str(began), end=str(end))
    async with (
        over_http(
            f"{server.url}mcp-notebook", "legacy", token=TOKEN, message_handler=names.handle
        ) as client,
        anyio.create_task_group() as tasks,
    ):

        async def list_names():
            return {tool.name for tool in (await client.list_tools()).tools}

        with anyio.fail_after(TIMEOUT):
            while "old_measure" not in await list_names():
                await names.wait()
            await see(lambda state: state.get("name") == "old")
            async with anyio.create_task_group() as running:  # the cell ends before its kernel does
                running.start_soon(anyio.to_thread.run_sync, server.run, kernel, cell)
                await appears(began)
                server.http.patch(f"api/contents/{source}", json={"path": to}).raise_for_status()
                await see(lambda state: state["name"] == "new")
                while "new_measure" not in await list_names():
                    await names.wait()
                tasks.start_soon(client.call_tool, "delete_all", {})
                await see(lambda state: state["questions"])
                end.touch()
        assert "\nNotebook: new\n" in state["questions"][0]["text"]
        await close_websocket(socket)
        server.http.delete(f"api/kernels/{kernel}").raise_for_status()
