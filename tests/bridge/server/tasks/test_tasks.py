"""When calls become tasks; the rest: tests/e2e/test_tasks.py."""

import asyncio

import pytest

from mcp_notebook.bridge.kernels.running_call import RunningCall
from mcp_notebook.bridge.server.tasks.tasks import Tasks
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio


async def due_timers():
    """Wait until the loop has called what was due."""
    for _ in range(3):
        done = asyncio.Event()
        asyncio.get_running_loop().call_later(0, done.set)
        await done.wait()


async def test_a_call_becomes_a_task_after_a_while_but_not_while_its_user_is_asked():
    sent = []
    call = RunningCall(1, sent.append)
    call.handle(messages.Ask(id=1, question=5, key="name", message="Name?", form={}), [])
    with Tasks(None, 0.0, None, ready=None).watch(call, "ann"):
        await due_timers()
        assert sent == []
        call.handle(messages.Withdraw(id=1, question=5), [])
        await due_timers()
    assert sent == [messages.KeepCall(id=1, owner="ann")]
