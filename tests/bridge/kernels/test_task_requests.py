"""What a kernel is asked about its tasks; with real kernels: tests/e2e/test_tasks.py."""

import anyio
import pytest

from mcp_notebook.bridge.kernels import task_requests
from mcp_notebook.bridge.kernels.task_requests import KernelTask, TaskRequests
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import KernelGone
from mcp_notebook.wire import content_blocks, task_messages

pytestmark = pytest.mark.anyio

INFO = task_messages.TaskInfo(
    id="train", tool="train", status="completed", created=0, updated=1, version=3
)


@pytest.fixture
def sent():
    return []


@pytest.fixture
def requests(sent):
    requests = TaskRequests("sales", iter(range(1, 9)).__next__, sent.append)
    requests.are_possible = True
    return requests


async def replied(requests, request, **state):
    """Return what a request returns when the kernel answers it with this state."""
    results = []

    async def ask():
        results.append(await request)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        requests.take_state(task_messages.TaskState(id=1, **state), [])
    return results[0]


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("find", {}, task_messages.AskTask(id=1, task="train", owner="ann")),
        ("find", {"after": 2}, task_messages.AskTask(id=1, task="train", owner="ann", after=2)),
        ("cancel", {}, task_messages.CancelTask(id=1, task="train", owner="ann")),
        (
            "answer",
            {"answers": {"q": task_messages.TaskAnswer(action="decline")}},
            task_messages.AnswerTask(
                id=1,
                task="train",
                owner="ann",
                answers={"q": task_messages.TaskAnswer(action="decline")},
            ),
        ),
    ],
)
async def test_a_request_returns_the_task_with_its_result(
    requests, sent, method, arguments, message
):
    packed, _ = content_blocks.pack_result(1, Result([Text("done")]))
    request = getattr(requests, method)("train", "ann", **arguments)
    task = await replied(requests, request, task=INFO, result=packed)
    assert task == KernelTask(INFO, Result((Text("done"),)))
    assert sent == [message]


async def test_a_task_that_is_not_there_is_none(requests):
    assert await replied(requests, requests.find("train", "ann")) is None


@pytest.mark.parametrize("after", [None, 1])
async def test_a_kernel_that_does_not_answer_is_not_waited_for_for_ever(
    requests, monkeypatch, after
):
    monkeypatch.setattr(task_requests, "ANSWER_LIMIT", 0.01)
    monkeypatch.setattr(task_messages, "MAX_WAIT", 0.01)
    with pytest.raises(TimeoutError):
        await requests.find("train", "ann", after=after)


async def test_requests_end_with_their_kernel_and_no_more_are_sent(requests, sent):
    async with anyio.create_task_group() as tasks:

        async def ask():
            with pytest.raises(KernelGone, match="died"):
                await requests.find("train", "ann")

        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        requests.close("The kernel died.")
    with pytest.raises(KernelGone, match="'sales' has no tasks"):
        await requests.cancel("train", "ann")
    assert len(sent) == 1
