"""Links of a Jupyter server to kernels, some of which it does not understand."""

import logging
import subprocess
import sys
from types import SimpleNamespace

import anyio
import pytest
from kernel_stand_ins import peer, welcome
from msgspec import structs

from mcp_notebook.discovery.records import remove_record, write_record
from mcp_notebook.jupyter.notebook_links import NotebookLinks
from mcp_notebook.wire import frames, messages

pytestmark = pytest.mark.anyio
PANEL = welcome()
STATE = messages.NotebookState(name="good")
UNKNOWN = messages.NotebookState(tools=[{"name": "a", "effect": "of a later one"}])


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Kernels:
    """Stands for Jupyter's manager, with kernels that tests listen for."""

    def __init__(self, *kernel_ids):
        self._kernel_ids = kernel_ids
        self.kernel = SimpleNamespace()
        self.looks = 0

    def list_kernel_ids(self):
        self.looks += 1
        return list(self._kernel_ids)

    def get_kernel(self, _):
        return self.kernel


def say(*answers):
    """Return what a kernel says to each `Hello`, as bytes."""
    return b"".join(bytes(part) for answer in answers for part in frames.encode(answer))


async def test_a_notebook_that_asks_for_its_panel_is_told_to_pages(home):
    folder = home / "records"
    async with peer(home, say(PANEL, STATE, messages.ShowPanel())) as kernel:
        write_record(folder, structs.replace(kernel.record, jupyter_id="k"))
        links = NotebookLinks(Kernels("k"), folder, logging.getLogger())
        events, is_asked = [], anyio.Event()

        def watch(event):
            events.append(event)
            if event.get("show"):
                is_asked.set()

        await links.add(watch)
        with anyio.fail_after(8):
            await is_asked.wait()
        links.remove(watch)
    assert events == [
        {"kernel": "k", "changes": {"name": "good"}},
        {"kernel": "k", "show": True},
    ]


@pytest.mark.parametrize(
    ("is_unload", "told"), [(True, {"changes": None, "unloaded": True}), (False, {"changes": None})]
)
async def test_pages_learn_whether_a_kernel_runs_on_without_the_extension(home, is_unload, told):
    folder = home / "records"
    goodbye = messages.Goodbye(reason="It leaves.", is_unload=is_unload)
    async with peer(home, say(PANEL, STATE, goodbye)) as kernel:
        write_record(folder, structs.replace(kernel.record, jupyter_id="k"))
        links = NotebookLinks(Kernels("k"), folder, logging.getLogger())
        events, is_gone = [], anyio.Event()

        def watch(event):
            events.append(event)
            if event["changes"] is None:
                is_gone.set()

        await links.add(watch)
        kernel.writer.close()
        with anyio.fail_after(8):
            await is_gone.wait()
        links.remove(watch)
    assert events[:2] == [{"kernel": "k", "changes": {"name": "good"}}, {"kernel": "k"} | told]


@pytest.mark.parametrize(
    ("answer", "kind", "says", "most"),
    [
        (say(PANEL, UNKNOWN), "version", "The side panel does not understand this kernel", 1),
        (say(welcome(protocol=99)), "version", "speaks version 99", 1),
        # This one may be tried again after `links.RETRY_AFTER`, but not at each look.
        (say(messages.Refused(message="No more bridges.")), "unreachable", "No more bridges.", 2),
    ],
    ids=["unknown value", "other protocol", "refused"],
)
async def test_a_kernel_that_cannot_be_shown_says_why_and_holds_up_no_other(
    home, answer, kind, says, most
):
    folder, kernels = home / "records", Kernels("g", "b")
    good_answer = say(PANEL, STATE)
    async with peer(home, good_answer) as good, peer(home, answer) as bad:
        for kernel_id, each in (("g", good), ("b", bad)):
            write_record(folder, structs.replace(each.record, jupyter_id=kernel_id))
        links = NotebookLinks(kernels, folder, logging.getLogger())
        with anyio.fail_after(8):  # it would wait for `ANSWER_LIMIT` otherwise
            async with links.opened():
                states, looks = links.read(), kernels.looks
                while kernels.looks <= looks + most:  # noqa: ASYNC110 - nobody tells of looks
                    await anyio.sleep(0.05)
        assert states["g"]["name"] == "good"
        assert says in states["b"]["trouble"]
        assert states["b"]["trouble_kind"] == kind
        assert bad.connections <= most
    assert links.read() == {}


async def test_a_kernel_whose_process_is_ending_is_restarting_until_it_was(home):
    folder, kernels = home / "records", Kernels("k")
    links = NotebookLinks(kernels, folder, logging.getLogger())
    events, ends = [], {"restarting": anyio.Event(), "gone": anyio.Event()}

    def watch(event):
        events.append(changes := event["changes"])
        if changes is not None and "trouble" in changes:
            ends["restarting"].set()
        elif ends["restarting"].is_set():
            ends["gone"].set()

    async with peer(home, say(PANEL, STATE)) as kernel:
        write_record(folder, structs.replace(kernel.record, jupyter_id="k"))
        await links.add(watch)
        kernels.kernel.shutting_down = True
        remove_record(folder, kernel.record.id)
    with anyio.fail_after(8):
        await ends["restarting"].wait()
        kernels.kernel.shutting_down = False
        await ends["gone"].wait()
    links.remove(watch)
    *_, gone, restarting, again = events
    assert gone is again is None
    assert (restarting["name"], restarting["trouble_kind"]) == ("sales", "restarting")


STOPPED_WHILE_IT_LOOKS = """
import asyncio, logging, pathlib, sys, threading
from mcp_notebook.jupyter.notebook_links import NotebookLinks

class Kernels:
    def list_kernel_ids(self):
        return []

async def look():
    links = NotebookLinks(Kernels(), pathlib.Path(sys.argv[1]), logging.getLogger())
    await links.add(print)

def stop():
    if threading.active_count() > 1:
        loop.stop()
    else:
        loop.call_soon(stop)

loop = asyncio.new_event_loop()
task = loop.create_task(look())
loop.call_soon(stop)
loop.run_forever()
"""


def test_a_server_that_is_stopped_while_it_looks_for_notebooks_ends(home):
    words = [sys.executable, "-c", STOPPED_WHILE_IT_LOOKS, str(home / "records")]
    ended = subprocess.run(words, timeout=60, check=False, capture_output=True)
    assert ended.returncode == 0
