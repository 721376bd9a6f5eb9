"""What a kernel is asked for besides calls, and what then happens if it is odd or dies."""

import os

import anyio
import pytest
from kernel_stand_ins import keeping, peer, welcome
from live import TIMEOUT

from mcp_notebook.bridge.kernels import resource_requests
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.errors import KernelGone, ResourceFailed, UnknownResource
from mcp_notebook.wire import messages

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name == "nt", reason="the stand-ins listen on Unix sockets"),
]


async def test_a_kernel_that_is_too_old_for_resources_is_not_asked_for_them(home):
    async with peer(home, welcome("a")) as old, Links(Catalog(), on_change=int) as links:
        await links.connect(old.record)
        assert await links.open_links[0].resources.list_resources(0, 10) == []
        with pytest.raises(KernelGone, match="has no resources"):
            await links.read_resource(f"notebook://{old.record.id}/1/a.csv")
        assert [type(message) for message in old.heard] == [messages.Hello]


async def test_a_kernel_that_does_not_answer_in_time_is_said_to_have_nothing(home, monkeypatch):
    monkeypatch.setattr(resource_requests, "LIST_LIMIT", 0.05)
    monkeypatch.setattr(resource_requests, "READ_LIMIT", 0.05)
    async with peer(home, keeping("a")) as mute, Links(Catalog(), on_change=int) as links:
        await links.connect(mute.record)
        assert await links.open_links[0].resources.list_resources(0, 10) == []
        with pytest.raises(ResourceFailed, match=r"within 0\.05 s, the time limit"):
            await links.read_resource(f"notebook://{mute.record.id}/1/a.csv")
        # What comes late is nobody's.
        mute.say(messages.Contents(id=2, error="late"))
        mute.say(messages.Tools(tools=[]))


async def test_what_is_asked_of_a_kernel_that_dies_is_answered_at_once(home):
    async with peer(home, keeping("a")) as dying, Links(Catalog(), on_change=int) as links:
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


async def test_a_content_that_cannot_be_read_fails_its_request_only(home):
    async with peer(home, keeping("a")) as odd, Links(Catalog(), on_change=int) as links:
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
