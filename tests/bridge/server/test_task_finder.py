"""What is said of tasks that cannot be asked for; of all others: tests/e2e/test_tasks.py."""

import os
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
import pytest
from kernel_stand_ins import peer, welcome
from live import TIMEOUT
from mcp import Client
from mcp.shared.exceptions import MCPError
from task_client import TasksExtension, ask_task, start_task

from mcp_notebook.bridge.kernels import task_requests
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.wire import task_messages

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name == "nt", reason="the stand-ins listen on Unix sockets"),
]


@asynccontextmanager
async def asked(home):
    """Yield a client, a server and a stand-in for its kernel, whose only tool makes tasks."""
    hello = welcome("train").model_copy(update={"tasks": True})
    hello.tools[0] = hello.tools[0].model_copy(update={"task": "optional"})
    catalog = Catalog()
    async with peer(home, hello) as kernel, Links(catalog, on_change=int) as links:
        await links.connect(kernel.record)
        server = NotebookServer(catalog, links)
        async with Client(server.mcp, extensions=[TasksExtension()]) as client:
            with anyio.fail_after(TIMEOUT):
                yield client, server, kernel


async def test_a_task_whose_kernel_does_not_answer_now_is_as_it_was(home, monkeypatch):
    monkeypatch.setattr(task_requests, "ANSWER_LIMIT", 0.05)
    async with asked(home) as (client, _, kernel):
        task_id = f"train-{kernel.record.id}-{'0' * 32}"

        async def create():
            await kernel.called.wait()
            info = task_messages.TaskInfo(
                id=task_id,
                tool="train",
                status="working",
                message="epoch 1",
                created=0,
                updated=1,
                version=1,
            )
            kernel.say(task_messages.TaskState(id=1, task=info))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(create)
            await start_task(client, "train")
        state = await ask_task(client, "tasks/get", task_id)
        assert (state["status"], state["statusMessage"]) == ("working", "epoch 1")
        for method in ("tasks/cancel", "tasks/update"):  # cannot be promised
            with pytest.raises(MCPError, match="The kernel of 'sales' did not say within"):
                await ask_task(client, method, task_id, inputResponses={})


@pytest.mark.parametrize(
    ("lives", "text", "code"),
    [
        (True, "lives, but cannot be asked from here", types.INTERNAL_ERROR),
        (False, "died or was restarted, and the task was lost with it", types.INVALID_PARAMS),
    ],
)
async def test_a_task_whose_kernel_is_not_linked_says_whether_it_lives(home, lives, text, code):
    async with asked(home) as (client, server, _):
        ids = []
        server.calls.tasks.finder.has_kernel = lambda kernel_id: ids.append(kernel_id) or lives
        with pytest.raises(MCPError, match=text) as caught:
            await ask_task(client, "tasks/get", f"train-ab12-{'0' * 32}")
        assert caught.value.code == code
        assert ids == ["ab12"]
