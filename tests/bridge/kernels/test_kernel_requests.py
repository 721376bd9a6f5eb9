"""What a kernel is asked for besides calls, and what then happens if it is odd or dies.

With real kernels: tests/e2e/test_tasks.py, test_resources.py and test_consent.py.
"""

import asyncio
import os

import anyio
import pytest
from kernel_stand_ins import keeping, peer
from live import TIMEOUT

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.kernel_requests import KernelRequests, KernelTask
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import KernelGone, ResourceFailed, UnknownResource
from mcp_notebook.wire import content_blocks, messages

pytestmark = pytest.mark.anyio
on_unix = pytest.mark.skipif(os.name == "nt", reason="the stand-ins listen on Unix sockets")

INFO = messages.TaskInfo(
    id="train", tool="train", status="completed", created=0, updated=1, version=3
)


@pytest.fixture
def sent():
    return []


@pytest.fixture
def requests(sent):
    requests = KernelRequests("sales", iter(range(1, 9)).__next__, sent.append)
    requests.is_open = True
    return requests


async def start(requests, uri="notebook://k/1", **limits):
    """Ask for a resource, and return the task that waits for it."""
    requests.is_open = True
    task = asyncio.ensure_future(requests.read_resource(uri, **limits))
    await anyio.wait_all_tasks_blocked()
    return task


async def test_each_request_has_a_number_and_gets_the_first_reply_to_it(requests, sent):
    first, second = await start(requests), await start(requests)
    assert [message.id for message in sent] == [1, 2]
    for number, reply in ((2, "two"), (2, "again"), (7, "nobody's"), (1, "one")):
        requests.take(messages.Contents(id=number, error=reply), [])
    for request, reply in ((first, "one"), (second, "two")):
        with pytest.raises(ResourceFailed, match=reply):
            await request
    requests.take(messages.Contents(id=1, error="late"), [])


async def test_a_request_without_a_reply_ends_in_time_and_what_comes_late_is_ignored(
    requests, sent
):
    with pytest.raises(ResourceFailed, match=r"within 0\.01 s, the time limit"):
        await (await start(requests, seconds=0.01))
    requests.take(messages.Contents(id=1, error="late"), [])
    assert sent[1:] == [messages.EndRead(id=1)]


@pytest.mark.parametrize("how", ["cancelled", "late"])
async def test_a_kernel_is_told_that_a_read_is_no_longer_wanted(requests, sent, how):
    read = await start(requests, seconds=0.01 if how == "late" else TIMEOUT)
    if how == "cancelled":
        read.cancel()
    with pytest.raises((asyncio.CancelledError, ResourceFailed)):
        await read
    assert sent[1:] == [messages.EndRead(id=sent[0].id)]
    answered = await start(requests)
    requests.take(messages.Contents(id=sent[-1].id, error="no"), [])
    with pytest.raises(ResourceFailed, match="no"):
        await answered
    assert len(sent) == 3


async def test_requests_for_resources_can_be_ended_alone_and_end_once(requests):
    reads = [await start(requests), await start(requests)]
    question = ask(requests)
    await anyio.wait_all_tasks_blocked()
    requests.end_reads("The bridge was stopped.")
    requests.close("The kernel died.")
    for read in reads:
        with pytest.raises(KernelGone, match="was stopped"):
            await read
    with pytest.raises(KernelGone, match="died"):
        await question


# -- resources


@on_unix
async def test_a_kernel_that_does_not_answer_in_time_is_said_to_have_nothing(home):
    async with peer(home, keeping("a")) as mute, Links(Catalog()) as links:
        await links.connect(mute.record)
        requests = links.open_links[0].requests
        assert await requests.list_resources(0, 10, seconds=0.05) == []
        uri = f"notebook://{mute.record.id}/1/a.csv"
        with pytest.raises(ResourceFailed, match=r"within 0\.05 s, the time limit"):
            await requests.read_resource(uri, seconds=0.05)
        # What comes late is nobody's.
        mute.say(messages.Contents(id=2, error="late"))
        mute.say(messages.Tools(tools=[]))


@on_unix
async def test_what_is_asked_of_a_kernel_that_dies_is_answered_at_once(home):
    async with peer(home, keeping("a")) as dying, Links(Catalog()) as links:
        await links.connect(dying.record)
        (link,) = links.open_links
        uri = f"notebook://{dying.record.id}/1/a.csv"
        async with anyio.create_task_group() as tasks:

            async def read():
                with pytest.raises(KernelGone, match="is gone, and its resources"):
                    await links.read_resource(uri)

            with anyio.fail_after(TIMEOUT):
                tasks.start_soon(read)
                await dying.was_read.wait()
                dying.writer.close()
        with anyio.fail_after(TIMEOUT):
            await link.end.wait()
        with pytest.raises(UnknownResource, match="is gone"):
            await links.read_resource(uri)


@on_unix
async def test_a_content_that_cannot_be_read_fails_its_request_only(home):
    async with peer(home, keeping("a")) as odd, Links(Catalog()) as links:
        await links.connect(odd.record)
        with anyio.fail_after(TIMEOUT):
            async with anyio.create_task_group() as tasks:

                async def read():
                    with pytest.raises(ResourceFailed, match="came in 0 attachments"):
                        await links.read_resource(f"notebook://{odd.record.id}/1/a.csv")

                tasks.start_soon(read)
                await odd.was_read.wait()
                odd.say(messages.Contents(id=1))
        assert len(links) == 1


# -- tasks


async def replied(requests, request, **state):
    """Return what a request returns when the kernel answers it with this state."""
    results = []

    async def ask():
        results.append(await request)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        requests.take(messages.TaskState(id=1, **state), [])
    return results[0]


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("find_task", {}, messages.AskTask(id=1, task="train", owner="ann")),
        (
            "find_task",
            {"after": 2},
            messages.AskTask(id=1, task="train", owner="ann", after=2),
        ),
        ("cancel_task", {}, messages.CancelTask(id=1, task="train", owner="ann")),
        (
            "answer_task",
            {"answers": {"q": messages.TaskAnswer(action="decline")}},
            messages.AnswerTask(
                id=1,
                task="train",
                owner="ann",
                answers={"q": messages.TaskAnswer(action="decline")},
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


async def test_requests_end_with_their_kernel_and_no_more_are_sent(requests, sent):
    async with anyio.create_task_group() as tasks:

        async def ask():
            with pytest.raises(KernelGone, match="died"):
                await requests.find_task("train", "ann")

        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        requests.close("The kernel died.")
    with pytest.raises(KernelGone, match="'sales' has no tasks"):
        await requests.cancel_task("train", "ann")
    assert len(sent) == 1


# -- consent


def ask(requests):
    return asyncio.ensure_future(requests.ask_consent("drop", "May it?", seconds=9, session="hour"))


async def test_a_question_gets_its_own_answer_and_only_once():
    sent = []
    requests = KernelRequests("sales", iter(range(1, 9)).__next__, sent.append)
    first, second = ask(requests), ask(requests)
    await anyio.wait_all_tasks_blocked()
    assert sent[0] == messages.AskConsent(
        id=1, tool="drop", text="May it?", seconds=9, session="hour"
    )
    requests.take(messages.Consent(id=2, decision="deny"), [])
    requests.take(messages.Consent(id=2, decision="once"), [])
    requests.take(messages.Consent(id=7, decision="once"), [])
    assert await second == "deny"
    assert not first.done()
    requests.take(messages.Consent(id=1, decision="session"), [])
    assert await first == "session"
    assert len(sent) == 2


async def test_a_cancelled_question_is_withdrawn():
    sent = []
    requests = KernelRequests("sales", iter(range(1, 9)).__next__, sent.append)
    question = ask(requests)
    await anyio.wait_all_tasks_blocked()
    question.cancel()
    with pytest.raises(asyncio.CancelledError):
        await question
    assert sent[1:] == [messages.WithdrawConsent(id=1)]
    requests.take(messages.Consent(id=1, decision="once"), [])
