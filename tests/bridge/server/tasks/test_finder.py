"""What is said of tasks that cannot be asked for; of all others: tests/e2e/test_tasks.py."""

import os
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
import pytest
from judge import in_process
from kernel_stand_ins import peer, welcome
from linked_servers import make_server
from live import TIMEOUT
from mcp import Client
from mcp.shared.exceptions import MCPError
from msgspec import structs
from task_client import TasksExtension, ask_task, start_task

from mcp_notebook.bridge.kernels import kernel_requests
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.wire import messages

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name == "nt", reason="the stand-ins listen on Unix sockets"),
]


@asynccontextmanager
async def asked(home):
    """Yield a client, a server and a stand-in for its kernel, whose only tool makes tasks."""
    hello = welcome("train")
    hello.tools[0] = structs.replace(hello.tools[0], task="optional")
    catalog = Catalog()
    async with peer(home, hello) as kernel, Links(catalog) as links:
        await links.connect(kernel.record)
        server = make_server(catalog, links)
        async with Client(in_process(server), extensions=[TasksExtension()]) as client:
            with anyio.fail_after(TIMEOUT):
                yield client, server, kernel


def make_info(kernel):
    return messages.TaskInfo(
        id=f"train-{kernel.record.id}-{'0' * 32}",
        tool="train",
        status="working",
        message="epoch 1",
        created=0,
        updated=1,
        version=1,
    )


async def make_task(client, kernel):
    """Call the tool, let the kernel make a task of it, and return the task's id."""
    info = make_info(kernel)

    async def create():
        await kernel.called.wait()
        kernel.say(messages.TaskState(id=1, task=info))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(create)
        await start_task(client, "train")
    return info.id


async def heard(kernel, kind):
    """Return the next message of a kind that the kernel hears."""
    while True:
        for message in kernel.heard:
            if isinstance(message, kind):
                kernel.heard.remove(message)
                return message
        await anyio.sleep(0.01)


async def test_a_task_whose_kernel_does_not_answer_now_is_as_it_was(home, monkeypatch):
    monkeypatch.setattr(kernel_requests, "TASK_LIMIT", 0.05)
    async with asked(home) as (client, _, kernel):
        task_id = await make_task(client, kernel)
        state = await ask_task(client, "tasks/get", task_id)
        assert (state["status"], state["statusMessage"]) == ("working", "epoch 1")
        for method in ("tasks/cancel", "tasks/update"):  # cannot be promised
            with pytest.raises(MCPError, match="The kernel of 'sales' did not report the task"):
                await ask_task(client, method, task_id, inputResponses={})


async def test_a_task_that_its_kernel_has_forgotten_was_not_lost_with_the_kernel(home):
    """Its client has not asked for it since it ended."""
    async with asked(home) as (client, _, kernel), anyio.create_task_group() as tasks:
        task_id = await make_task(client, kernel)

        async def forget():
            request = await heard(kernel, messages.AskTask)
            kernel.say(messages.TaskState(id=request.id))

        for _ in range(2):
            tasks.start_soon(forget)
            with pytest.raises(MCPError, match="it was forgotten") as caught:
                await ask_task(client, "tasks/get", task_id)
            assert caught.value.code == types.INVALID_PARAMS


async def test_a_task_whose_kernel_lives_is_not_lost_with_the_link(home):
    async with asked(home) as (client, server, kernel):
        task_id = await make_task(client, kernel)
        finder, asks = server.tasks.finder, []
        finder.has_kernel = lambda kernel_id: asks.append(kernel_id) or lives
        link, lives = finder.find_link(task_id), True
        kernel.writer.close()
        await link.end.wait()
        assert (await ask_task(client, "tasks/get", task_id))["status"] == "working"
        with pytest.raises(MCPError, match="is alive but not connected here"):
            await ask_task(client, "tasks/cancel", task_id)
        lives = False
        state = await ask_task(client, "tasks/get", task_id)
        assert state["status"] == "failed"
        assert "died, was restarted, or ended" in state["error"]["message"]


@pytest.mark.parametrize(
    ("lives", "text", "code"),
    [
        (True, "is alive but not connected here", types.INTERNAL_ERROR),
        (False, "ended after a newer version of the notebook was saved", types.INVALID_PARAMS),
    ],
)
async def test_a_task_whose_kernel_is_not_linked_says_whether_it_lives(home, lives, text, code):
    async with asked(home) as (client, server, _):
        ids = []
        server.tasks.finder.has_kernel = lambda kernel_id: ids.append(kernel_id) or lives
        with pytest.raises(MCPError, match=text) as caught:
            await ask_task(client, "tasks/get", f"train-ab12-{'0' * 32}")
        assert caught.value.code == code
        assert ids == ["ab12"]
