"""Stopping a call without a lasting link, where the kernel is not what it should be."""

import os

import anyio
import pytest
from kernel_stand_ins import peer, welcome
from msgspec import structs

from mcp_notebook.bridge.kernels.stop_requests import list_calls, stop_call
from mcp_notebook.errors import LinkError
from mcp_notebook.wire import messages

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name == "nt", reason="the stand-ins listen on Unix sockets"),
]


async def test_the_calls_are_those_of_the_welcome(home):
    call = messages.CallInfo(number=3, tool="top", doing="running for 1 s")
    async with peer(home, structs.replace(welcome(), calls=[call])) as kernel:
        assert await list_calls(kernel.record) == [call]
        await kernel.left.wait()


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        (messages.Goodbye(reason="The kernel was restarted."), "sales: The kernel was restarted."),
        (b"\0\0\0\2[]", "did not report whether the call ended"),
        (None, "The kernel of 'sales' ended, and its calls with it."),
    ],
)
async def test_a_kernel_that_leaves_meanwhile_is_one_sentence(home, says, problem):
    async with peer(home, welcome()) as kernel, anyio.create_task_group() as tasks:

        async def leave():
            while len(kernel.heard) < 2:
                await anyio.lowlevel.checkpoint()
            if says is None:
                kernel.writer.close()
            else:
                kernel.say(says)

        tasks.start_soon(leave)
        with pytest.raises(LinkError, match=problem):
            await stop_call(kernel.record, 3, "Enough.")
    assert kernel.heard[1] == messages.StopCall(
        id=1, number=3, reason="Enough.", by="you, with `mcp-notebook stop`"
    )


async def test_a_kernel_that_says_nothing_is_not_waited_for_for_ever(home):
    async with peer(home, welcome()) as kernel:
        with pytest.raises(LinkError, match="`mcp-notebook stop` lists the calls"):
            await stop_call(kernel.record, 3, "Enough.", seconds=0.05)
