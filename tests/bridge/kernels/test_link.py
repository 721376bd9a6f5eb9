"""One link: to whatever may listen in the place of a kernel."""

import asyncio
import os

import anyio
import pytest
from kernel_stand_ins import peer, welcome
from live import TIMEOUT

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import NO_LISTENER, Listener
from mcp_notebook.errors import KernelGone, LinkError
from mcp_notebook.wire import messages

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name == "nt", reason="the stand-ins listen on Unix sockets"),
]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (messages.Refused(message="The token is wrong."), "sales: The token is wrong."),
        (messages.Goodbye(reason="no"), "is not a kernel of mcp-notebook"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "is not a kernel of mcp-notebook"),
    ],
)
async def test_who_does_not_say_welcome_is_not_linked(home, answer, problem):
    async with peer(home, answer) as odd:
        catalog = Catalog()
        with pytest.raises(LinkError, match=problem):
            async with Links(catalog) as links:
                await links.connect(odd.record)
        assert catalog.entries() == ()


async def test_a_record_without_a_listener_is_one_sentence(home):
    async with peer(home, welcome()) as gone:
        pass
    with pytest.raises(LinkError, match="kernel of 'sales' cannot be reached"):
        async with Links(Catalog()) as links:
            await links.connect(gone.record)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
async def test_the_socket_of_another_user_is_not_spoken_to(home):
    async with peer(home, welcome("top")) as theirs:
        os.chown(theirs.record.socket, 12345, -1)
        with pytest.raises(LinkError, match="belongs to another user"):
            async with Links(Catalog()) as links:
                await links.connect(theirs.record)
        assert theirs.connections == 0


async def test_a_call_that_was_answered_is_forgotten_and_a_second_answer_changes_nothing(home):
    async with peer(home, welcome("top")) as notebook, anyio.create_task_group() as tasks:
        link = Link(notebook.record, lambda _tools: None)
        await link.connect()
        tasks.start_soon(link.listen)
        with anyio.fail_after(TIMEOUT):
            for number in (1, 2):
                call = link.start_call("top", {})
                assert call.id == number
                await notebook.called.wait()
                for text in ("first", "second"):
                    block = {"type": "text", "text": text}
                    notebook.say(messages.Returned(id=number, content=[block]))
                result = await call.follow(NO_LISTENER)
                assert [block.text for block in result.content] == ["first"]
                assert number not in link._calls
            link.close()
            await notebook.left.wait()
        assert not any(isinstance(message, messages.Cancel) for message in notebook.heard)
        tasks.cancel_scope.cancel()


async def test_tools_that_cannot_be_taken_are_one_sentence_and_end_nothing(home):
    taken = []

    def take(message):
        names = [tool.name for tool in message.tools]
        if "odd" in names:
            raise ZeroDivisionError("an odd tool")
        taken.append(names)

    async with peer(home, welcome("odd")) as odd:
        with pytest.raises(LinkError, match="The tools of 'sales' could not be read: ZeroDivision"):
            await Link(odd.record, take).connect()
    async with peer(home, welcome("a")) as kernel, anyio.create_task_group() as tasks:
        link = Link(kernel.record, take)
        await link.connect()
        tasks.start_soon(link.listen)
        call = link.start_call("a", {})
        await kernel.called.wait()
        kernel.say(messages.Tools(tools=welcome("odd").tools))
        kernel.say(messages.Tools(tools=welcome("a", "b").tools))
        kernel.say(messages.Returned(id=call.id, content=[]))
        with anyio.fail_after(TIMEOUT):
            assert (await call.follow(NO_LISTENER)).content == ()
        link.close()
    assert taken == [["a"], ["a", "b"]]


async def test_what_a_kernel_says_of_a_call_after_its_result_is_not_heard(home):
    catalog, heard = Catalog(), []

    async def hear(message):
        heard.append(message)

    listener = Listener(progress=hear, log=hear, log_level="debug")
    async with peer(home, welcome("top")) as kernel, Links(catalog) as links:
        await links.connect(kernel.record)
        link = links.find_link(catalog.find("top"))
        first, second = (link.start_call("top", {}, listener) for _ in range(2))
        with anyio.fail_after(TIMEOUT):
            await kernel.called.wait()
            kernel.say(messages.Progress(id=first.id, progress=1))
            for _ in range(2):
                kernel.say(messages.Returned(id=first.id, content=[]))
            kernel.say(messages.Progress(id=first.id, progress=2))
            kernel.say(messages.Log(id=first.id, level="error", text="late"))
            kernel.say(messages.Returned(id=second.id, content=[]))
            assert (await second.follow(listener)).content == ()
            assert (await first.follow(listener)).content == ()
    assert [message.progress for message in heard] == [1]


@pytest.mark.parametrize("anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})])
async def test_what_is_asked_at_the_moment_of_a_kernels_death_ends_like_what_was_asked_before(
    home, anyio_backend
):
    """uvloop's transports raise an error once they are closed, before anybody hears of it."""
    answer = welcome("top")
    ends = []

    async def expect_end(wait):
        with pytest.raises(KernelGone) as gone:
            await wait
        ends.append(str(gone.value))

    async with peer(home, answer) as kernel, anyio.create_task_group() as tasks:
        link = Link(kernel.record, lambda _tools: None)
        await link.connect()

        async def listen():
            await link.listen()
            link.close()

        def ask():
            assert link.is_open
            call = link.start_call("top", {})
            call.cancel("The client left.")
            tasks.start_soon(expect_end, call.follow(NO_LISTENER))
            tasks.start_soon(expect_end, link.requests.find_task("t", "ann"))
            tasks.start_soon(expect_end, link.requests.read_resource("notebook://k/1"))

        tasks.start_soon(listen)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(expect_end, link.start_call("top", {}).follow(NO_LISTENER))
        link._connection.transport.abort()
        asyncio.get_running_loop().call_soon(ask)  # after the transport, before `listen`
    assert len(ends) == 4
    assert [end for end in ends if "'sales'" not in end] == []
    assert sum("closed the link, and the call was lost" in end for end in ends) >= 2
