"""A call without a kernel: what follows it hears, and what it is answered."""

import asyncio

import anyio
import pytest

from mcp_notebook.bridge.kernels.running_call import (
    MAX_LOGS,
    NO_LISTENER,
    BecameTask,
    Listener,
)
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import KernelGone
from mcp_notebook.wire import content_blocks, messages

pytestmark = pytest.mark.anyio
ASK = messages.Ask(id=1, question=1, key="q", message="Sure?", form={})


async def test_who_follows_a_call_hears_of_its_questions_and_keeps_what_came_meanwhile(call, sent):
    heard = []

    async def hear(message):
        heard.append(message)

    listener = Listener(progress=hear, log=hear, log_level="info")
    log = messages.Log(id=1, level="info", text="asks")
    call.handle(log, [])
    call.handle(ASK, [])
    assert await call.follow(listener) is None
    assert heard == [log]
    assert list(call.questions.values()) == [ASK]
    call.handle(messages.Progress(id=1, message="waiting for the user's answer for 5 s"), [])
    reply = messages.Answer(id=1, question=1, action="accept")
    call.answer(reply)
    call.answer(reply)  # it is no longer open
    assert sent == [reply]
    late = messages.Progress(id=1, progress=1)
    follower = asyncio.ensure_future(call.follow(listener))
    await anyio.wait_all_tasks_blocked()
    call.handle(late, [])
    call.handle(messages.Log(id=1, level="info", text="goes on"), [])
    await anyio.wait_all_tasks_blocked()
    assert late in heard
    assert len(heard) == 3
    call.handle(*content_blocks.pack_result(1, Result([Text("done")])))
    assert await follower == Result((Text("done"),))


async def test_a_question_that_is_taken_back_is_no_longer_open(call):
    call.handle(ASK, [])
    call.handle(messages.Withdraw(id=1, question=1), [])
    assert await call.follow(NO_LISTENER, open_questions={1}) is None
    assert call.questions == {}


async def test_a_call_without_a_kernel_raises_the_reason_and_cannot_be_cancelled(call, sent):
    call.end(KernelGone("The kernel died."))
    call.end(Result())  # the first end counts
    call.cancel("too late")
    assert sent == []
    with pytest.raises(KernelGone, match="died"):
        await call.follow(NO_LISTENER)


async def test_a_task_is_cancelled_with_its_call_unless_the_client_is_told_of_it(call, sent):
    info = messages.TaskInfo(
        id="t", tool="train", status="working", created=0, updated=0, version=0
    )
    call.handle(messages.TaskState(id=1, task=info), [])
    call.cancel("given up")  # before anybody knows the task's id
    assert sent == [messages.Cancel(id=1, reason="given up")]
    with pytest.raises(BecameTask), call.cancel_on_error():
        await call.follow(NO_LISTENER)
    call.cancel("given up")
    assert len(sent) == 1


async def test_a_slow_client_gets_the_newest_log_messages_and_the_number_of_the_others(call):
    for number in range(MAX_LOGS + 2):
        call.handle(messages.Log(id=1, level="error", text=str(number)), [])
    call.end(Result())
    heard = []

    async def hear(log):
        heard.append(log)

    assert await call.follow(Listener(log=hear, log_level="error")) == Result()
    note, *others = heard
    assert (note.level, note.text[:27]) == ("error", "2 log messages left out her")
    assert [log.text for log in others] == [str(number) for number in range(2, MAX_LOGS + 2)]
