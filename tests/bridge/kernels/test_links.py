"""The links of a bridge: to real kernels, and to whatever else may listen in their place."""

import os
from contextlib import asynccontextmanager

import anyio
import pytest
from kernel_stand_ins import peer, welcome
from live import TIMEOUT, record_of, soon, text_of
from msgspec import structs
from watched_catalog import WatchedCatalog

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery.greeting import greet
from mcp_notebook.errors import KernelGone, LinkError, ToolGone, UnknownResource
from mcp_notebook.wire import messages

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name == "nt", reason="the stand-ins listen on Unix sockets"),
]


@asynccontextmanager
async def following(catalog, *sets, **options):
    """Yield links that have followed these sets of records."""

    async def records():
        for current in sets:
            yield tuple(current)
        await anyio.sleep_forever()

    async with (
        Links(catalog, **options) as links,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(links.follow, records())
        yield links
        tasks.cancel_scope.cancel()


async def settled(links):
    with anyio.fail_after(TIMEOUT):
        await links.wait_until_settled()


@asynccontextmanager
async def calling(links, entry):
    """Have a call run for the length of the block; yield where its error will be."""
    errors = []

    async def call():
        try:
            await links.call(entry, {})
        except KernelGone as error:
            errors.append(str(error))

    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            yield errors


async def test_a_linked_kernels_tools_follow_it_and_can_be_called(kernel):
    kernel.ok("%%mcp_tool\ndef double(x: int):\n    return 2 * x")
    catalog = WatchedCatalog()
    async with following(catalog, [record_of(kernel)]) as links:
        await settled(links)
        assert len(links) == 1
        assert text_of(await links.call(catalog.find("double"), {"x": 21})) == "42"
        await anyio.to_thread.run_sync(kernel.ok, "%%mcp_tool\ndef half(x: int):\n    return x / 2")
        await catalog.wait_for("double", "half")
        gone = catalog.find("double")
        await anyio.to_thread.run_sync(kernel.ok, "%unload_ext mcp_notebook")
        await catalog.wait_for()
        with pytest.raises(KernelGone, match="'double' is gone"):
            await links.call(gone, {"x": 1})


async def test_notebooks_are_in_the_order_of_their_records_not_of_their_answers(home):
    catalog = WatchedCatalog()
    async with (
        peer(home, welcome("top"), silent=True) as slow,
        peer(home, welcome("top")) as quick,
        following(catalog, [slow.record, quick.record]),
    ):
        await catalog.wait_for("top")
        slow.may_answer.set()
        await catalog.wait_for("sales_top", "sales-2_top")
        assert catalog.find("sales_top").kernel_id == slow.record.id


async def test_the_end_of_an_old_link_leaves_the_new_one_of_its_kernel_alone(home):
    catalog = WatchedCatalog()
    async with (
        peer(home, welcome("top")) as old,
        peer(home, welcome("top")) as new,
        Links(catalog) as links,
    ):
        await links.connect(old.record)
        (old_link,) = links.open_links
        await links.connect(structs.replace(new.record, id=old.record.id))
        old.writer.close()
        with anyio.fail_after(TIMEOUT):
            await old_link.end.wait()
        assert len(links) == 1
        async with calling(links, catalog.find("top")) as errors:
            await new.called.wait()
            new.say(messages.Returned(id=1, content=[]))
        assert errors == []
        new.writer.close()
        await catalog.wait_for()


async def test_who_calls_the_tools_of_a_kernel_that_left_is_told_why(home):
    catalog = WatchedCatalog()
    async with (
        peer(home, welcome("top")) as restarted,
        peer(home, welcome("low")) as odd,
        following(catalog, [restarted.record, odd.record]),
    ):
        await catalog.wait_for("top", "low")
        restarted.say(messages.Goodbye(reason="The kernel was restarted."))
        restarted.writer.close()
        await catalog.wait_for("low")
        with pytest.raises(ToolGone, match=r"The kernel was restarted at \d\d:\d\d\. Its tools"):
            catalog.find("top")
        odd.writer.close()
        await catalog.wait_for()
        with pytest.raises(ToolGone, match=r"The link to its kernel was lost at"):
            catalog.find("low")


async def test_a_notebook_that_is_renamed_is_served_under_its_new_name(home):
    catalog = WatchedCatalog()
    send, receive = anyio.create_memory_object_stream(2)
    async with (
        peer(home, welcome("top"), name="other") as other,
        peer(home, welcome("top"), name="Untitled") as untitled,
        Links(catalog) as links,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(links.follow, receive)
        await send.send((other.record, untitled.record))
        await catalog.wait_for("other_top", "Untitled_top")
        renamed = structs.replace(untitled.record, name="sales", notebook="/sales.ipynb")
        await send.send((other.record, renamed))
        await catalog.wait_for("other_top", "sales_top")
        untitled.say(messages.Tools(tools=welcome("top", "new").tools))
        await catalog.wait_for("other_top", "sales_top", "new")
        assert catalog.find("new").notebook == "sales"
        assert {link.record.id: link.record for link in links.open_links} == {
            record.id: record for record in (other.record, renamed)
        }
        tasks.cancel_scope.cancel()
    send.close()
    receive.close()


async def test_a_call_is_told_how_its_notebook_left(home):
    catalog = WatchedCatalog()
    async with (
        peer(home, welcome("top")) as notebook,
        following(catalog, [notebook.record]) as links,
    ):
        await catalog.wait_for("top")
        async with calling(links, catalog.find("top")) as errors:
            await notebook.called.wait()
            notebook.say(messages.Goodbye(reason="The kernel was restarted."))
            notebook.writer.close()
    (error,) = errors
    assert error.startswith(
        "The call was lost: The kernel was restarted. The tools of 'sales' return"
    )


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\x00\x00\x02[]",
        b'\x00\x00\x00\x05{"a":',
        messages.Call(id=1, tool="top", arguments={}),
    ],
    ids=["http", "no object", "no JSON", "not a kernel's message"],
)
async def test_what_no_kernel_says_ends_that_link_and_no_other(home, said):
    catalog = WatchedCatalog()
    async with (
        peer(home, welcome("top")) as odd,
        peer(home, welcome("other")) as even,
        following(catalog, [odd.record, even.record]) as links,
    ):
        await catalog.wait_for("top", "other")
        async with calling(links, catalog.find("top")) as errors:
            await odd.called.wait()
            odd.say(said)
        await catalog.wait_for("other")
        assert "The link to the kernel failed" in errors[0]
        assert len(links) == 1


async def test_a_result_that_cannot_be_read_fails_its_call_and_no_other(home):
    catalog, results = WatchedCatalog(), {}
    async with (
        peer(home, welcome("top", "bottom")) as odd,
        following(catalog, [odd.record]) as links,
    ):
        await catalog.wait_for("top", "bottom")

        async def call(name):
            results[name] = await links.call(catalog.find(name), {})

        with anyio.fail_after(TIMEOUT):
            async with anyio.create_task_group() as tasks:
                for name in ("top", "bottom"):
                    odd.called = anyio.Event()
                    tasks.start_soon(call, name)
                    await odd.called.wait()
                odd.say(messages.Returned(id=1, content=[{"type": "hologram"}]))
                odd.say(messages.Returned(id=2, content=[{"type": "text", "text": "fine"}]))
        assert results["top"].is_error
        assert "could not be read: FrameError" in text_of(results["top"])
        assert "unknown type 'hologram'" in text_of(results["top"])
        assert text_of(results["bottom"]) == "fine"
        assert len(links) == 1


async def test_a_kernel_that_is_silent_is_told(home):
    async with peer(home, welcome("top"), silent=True) as notebook:
        with pytest.raises(LinkError, match=r"'sales' did not answer within 0\.05 s\.$"):
            await greet(notebook.record, seconds=0.05)


async def test_a_kernel_that_cannot_be_linked_is_told_and_tried_again_until_it_can(home):
    catalog = WatchedCatalog()
    async with peer(home, welcome("top")) as notebook:
        hidden = await anyio.Path(notebook.record.socket).rename(home / "hidden.sock")
        async with following(catalog, [notebook.record], retry_after=0.05) as links:
            await settled(links)
            assert len(links) == 0
            assert "The kernel of 'sales' cannot be reached" in links.problems[0]
            await hidden.rename(notebook.record.socket)
            await catalog.wait_for("top")
            assert links.problems == ()


async def test_a_kernel_of_another_protocol_version_is_told_once_and_left_alone(home):
    catalog = WatchedCatalog()
    other = welcome("top", protocol=messages.PROTOCOL_VERSION + 1)
    async with (
        peer(home, other) as newer,
        peer(home, welcome("other")) as notebook,
        following(catalog, [newer.record, notebook.record], retry_after=0.0) as links,
    ):
        await settled(links)
        (problem,) = links.problems
        assert "upgrade" in problem.lower()
        await catalog.wait_for("other")
        with anyio.move_on_after(0.1):
            await newer.called.wait()
        assert newer.connections == 1


async def test_calls_are_answered_when_the_bridge_ends_its_links(home):
    catalog = WatchedCatalog()
    async with peer(home, welcome("top")) as notebook, anyio.create_task_group() as tasks:
        ended = []

        async def call(links):
            with pytest.raises(KernelGone, match="The bridge was stopped"):
                await links.call(catalog.find("top"), {})
            ended.append(True)

        async with Links(catalog) as links:
            await links.connect(notebook.record)
            tasks.start_soon(call, links)
            with anyio.fail_after(TIMEOUT):
                await notebook.called.wait()
        with anyio.fail_after(TIMEOUT):
            await notebook.left.wait()
    assert ended
    assert [message.type for message in notebook.heard] == ["hello", "call", "cancel"]


async def test_a_call_that_is_no_longer_wanted_is_cancelled_in_the_kernel(home):
    catalog = WatchedCatalog()
    async with (
        peer(home, welcome("top")) as notebook,
        following(catalog, [notebook.record]) as links,
        anyio.create_task_group() as tasks,
    ):
        await catalog.wait_for("top")
        tasks.start_soon(links.call, catalog.find("top"), {})
        await notebook.called.wait()
        tasks.cancel_scope.cancel()
    await soon(lambda: notebook.heard[-1].type == "cancel")
    assert notebook.heard[-1].id == notebook.heard[-2].id


async def test_who_keeps_a_kernel_tells_its_calls_how_it_ended(home):
    catalog = WatchedCatalog()
    gone, told = anyio.Event(), anyio.Event()

    async def obituary():
        gone.set()
        await told.wait()
        return "It fell over."

    async with (
        peer(home, welcome("top")) as notebook,
        Links(catalog) as links,
    ):
        async with links.open_link(notebook.record, obituary) as link:
            async with calling(links, catalog.find("top")) as errors:
                await notebook.called.wait()
                notebook.writer.close()
                await gone.wait()  # before the calls are answered
                assert errors == []
                told.set()
            await link.end.wait()
        assert errors == ["It fell over."]
        with pytest.raises(KernelGone, match="The kernel that offered 'top' is gone"):
            links.find_link(catalog.find("top"))
        async with links.open_link(notebook.record, obituary):
            assert links.find_link(catalog.find("top")).is_open


async def test_calls_are_answered_although_nobody_finds_out_how_the_kernel_ended(home):
    catalog = WatchedCatalog()
    async with (
        peer(home, welcome("top")) as notebook,
        Links(catalog) as links,
        links.open_link(notebook.record, anyio.sleep_forever),
    ):
        async with calling(links, catalog.find("top")) as errors:
            await notebook.called.wait()
            notebook.writer.close()
        assert "closed the link, and the call was lost" in errors[0]


async def test_a_kernel_that_was_killed_is_told_as_dead_though_its_process_ends_later(kernel):
    kernel.ok("%%mcp_tool\nimport asyncio\nasync def wait():\n    await asyncio.sleep(60)")
    catalog = WatchedCatalog()
    async with following(catalog, [record_of(kernel)]) as links:
        await catalog.wait_for("wait")
        async with calling(links, catalog.find("wait")) as errors:
            os.kill(kernel.pid, 9)
        assert "The kernel of" in errors[0]
        assert "died" in errors[0]
        with pytest.raises(ToolGone, match=r"Its kernel crashed or was killed at \d\d:\d\d\."):
            catalog.find("wait")


# -- resources -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("", "does not begin with notebook://"),
        ("file:///a", "does not begin with notebook://"),
        ("notebook://", "it does not exist"),
        ("notebook:///a", "it does not exist"),
        ("notebook://k", "it does not exist"),
    ],
)
async def test_a_uri_of_no_kernel_is_unknown(uri, reason):
    async with Links(Catalog()) as links:
        with pytest.raises(UnknownResource, match=reason):
            await links.read_resource(uri)
