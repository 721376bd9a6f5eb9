"""Kernels of one notebook: one notebook to clients, and which of them gets a call."""

import asyncio
import gc
from dataclasses import dataclass

import pytest

from mcp_notebook.bridge.kernels import replicas
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.replicas import Replicas
from mcp_notebook.discovery.records import Record
from mcp_notebook.errors import KernelGone
from mcp_notebook.wire import messages


@dataclass
class OpenLink:
    """What is asked of a link."""

    id: str
    open_calls: int = 0
    main_calls: int = 0


def make_record(kernel_id, name="sales"):
    return Record(
        id=kernel_id,
        pid=1,
        started=1.0,
        host="here",
        version="test",
        protocol=1,
        name=name,
        socket="no-such-socket",
    )


def tool(name, **changes):
    return messages.ToolInfo(name=name, input_schema={}, **changes)


class Served:
    """A catalogue with the replicas of a notebook, and links to them."""

    def __init__(self, *kernel_ids, serving=None):
        self.catalog = Catalog()
        self.replicas = Replicas(self.catalog)
        self.links = {}
        for kernel_id in kernel_ids:
            self.replicas.add("notebook", kernel_id)
        if kernel_ids:
            self.replicas.serve("notebook", serving or kernel_ids)

    def offer(self, kernel_id, *tools):
        self.links.setdefault(kernel_id, OpenLink(kernel_id))
        return self.replicas.take_tools(make_record(kernel_id), messages.Tools(tools=list(tools)))

    def lose(self, kernel_id, reason="It is being restarted."):
        self.links.pop(kernel_id)
        return self.replicas.set_away(kernel_id, reason)

    @property
    def names(self):
        return [entry.name for entry in self.catalog.entries()]

    def choose(self, name):
        return self.replicas.choose(self.catalog.find(name), self.links)

    def call(self, name):
        link = self.choose(name)
        link.open_calls += 1
        return link.id


def test_the_replicas_of_a_notebook_are_one_notebook_to_clients():
    here = Served("1", "2")
    assert here.offer("1", tool("top"), tool("low"))
    assert not here.offer("2", tool("top"), tool("low"))
    assert here.names == ["top", "low"]
    assert here.catalog.find("sales.top") is here.catalog.find("top")


def test_a_call_goes_to_the_replica_with_the_fewest_open_calls():
    here = Served("1", "2", "3")
    for kernel_id in "123":
        here.offer(kernel_id, tool("top"))
    assert [here.call("top") for _ in range(6)] == ["1", "2", "3", "1", "2", "3"]
    here.links["2"].open_calls = 0
    assert here.call("top") == "2"
    assert here.call("top") == "2"
    assert here.call("top") == "1"


def test_a_call_that_needs_the_main_thread_goes_where_that_is_free_whatever_runs_in_threads():
    here = Served("1", "2")
    for kernel_id in "12":
        places = {"top": "main", "low": "loop", "far": "apart"}
        here.offer(kernel_id, *(tool(name, place=place) for name, place in places.items()))
    here.links["1"].open_calls = 7
    here.links["2"].open_calls = here.links["2"].main_calls = 2
    assert here.choose("top").id == here.choose("low").id == "1"
    assert here.choose("far").id == "2"
    here.links["1"].main_calls = 2
    assert here.choose("top").id == "2"


def test_among_idle_replicas_a_call_goes_to_the_one_whose_last_call_was_the_longest_ago():
    here = Served("1", "2", "3")
    for kernel_id in "123":
        here.offer(kernel_id, tool("top"))
    assert [here.choose("top").id for _ in range(5)] == ["1", "2", "3", "1", "2"]


def test_a_replica_that_is_away_gets_no_calls_and_the_notebook_is_away_when_all_are():
    here = Served("1", "2")
    here.offer("1", tool("top"))
    here.offer("2", tool("top"))
    assert not here.lose("1")
    assert [here.call("top") for _ in range(2)] == ["2", "2"]
    assert here.lose("2", "Both are being restarted.")
    assert here.names == []
    with pytest.raises(KernelGone, match=r"It is being restarted\."):
        here.catalog.find("top")
    assert here.offer("2", tool("top"))
    assert here.call("top") == "2"


def test_while_one_of_those_that_are_away_returns_callers_are_told_of_that_one():
    here = Served("1", "2")
    here.offer("1", tool("top"))
    here.offer("2", tool("top"))
    here.replicas.set_away("1", "It is no longer served.", is_final=True)
    here.lose("2", "It is being restarted.")
    with pytest.raises(KernelGone, match=r"^It is being restarted\.$"):
        here.catalog.find("top")


def test_it_is_known_whether_another_replica_answers():
    here = Served("1", "2")
    here.offer("1", tool("top"))
    assert not here.replicas.has_other("1")
    here.offer("2", tool("top"))
    assert here.replicas.has_other("1")
    assert here.replicas.has_other("2")
    here.lose("1")
    assert not here.replicas.has_other("2")
    assert not here.replicas.has_other("no replica")


def test_a_replica_whose_link_has_just_ended_gets_no_calls():
    here = Served("1", "2")
    here.offer("1", tool("top"))
    here.offer("2", tool("top"))
    entry = here.catalog.find("top")
    del here.links["1"]
    assert here.replicas.choose(entry, here.links).id == "2"
    del here.links["2"]
    with pytest.raises(KernelGone, match="'top' is gone"):
        here.replicas.choose(entry, here.links)


def test_a_tool_that_only_one_replica_has_is_called_there():
    here = Served("1", "2")
    here.offer("1", tool("top"))
    here.offer("2", tool("top"), tool("extra"))
    assert here.names == ["top", "extra"]
    assert [here.call("extra") for _ in range(3)] == ["2", "2", "2"]


def test_replicas_that_declare_a_tool_otherwise_than_it_is_listed_get_no_calls_to_it():
    here = Served("1", "2", "3")
    here.offer("1", tool("top", description="old"))
    here.offer("2", tool("top", description="new"))
    here.offer("3", tool("top", description="old"))
    assert {here.call("top") for _ in range(4)} == {"1", "3"}
    assert here.offer("1", tool("top", description="new"))
    assert {here.call("top") for _ in range(4)} == {"1", "2"}


def test_what_a_person_has_agreed_to_holds_in_the_replica_that_gets_the_call():
    here = Served("1", "2")
    here.offer("1", tool("drop", revision="a"))
    here.offer("2", tool("drop", revision="b"))
    entry = here.catalog.find("drop")
    assert {here.call("drop") for _ in range(2)} == {"1", "2"}
    assert here.replicas.find_revision(entry, "1") == "a"
    assert here.replicas.find_revision(entry, "2") == "b"
    here.offer("1", tool("drop", revision="declared again"))
    assert here.replicas.find_revision(entry, "2") == "a"  # which the kernel refuses


class Session:
    """What lasts as long as a client."""


def make_three():
    here = Served("1", "2", "3")
    for kernel_id in "123":
        here.offer(kernel_id, tool("top"), tool("low"))
    return here


@pytest.mark.parametrize("make_client", [Session, lambda: "the owner"])
def test_a_client_of_stateful_tools_is_kept_at_one_kernel(make_client):
    here, client = make_three(), make_client()
    here.choose("top")

    def choose(name):
        return here.replicas.choose(here.catalog.find(name), here.links, client).id

    assert choose("top") == "2"
    here.links["2"].open_calls = 9
    assert choose("low") == choose("top") == "2"
    assert here.replicas.choose(here.catalog.find("top"), here.links, Session()).id == "3"
    here.lose("2", "2 is being restarted.")
    with pytest.raises(KernelGone, match=r"^2 is being restarted\.$"):
        choose("top")
    here.offer("2", tool("top"), tool("low"))
    assert choose("top") == "2"
    here.replicas.set_away("2", "2 is no longer served.", is_final=True)
    assert choose("top") == choose("low") == "1"
    here.replicas.serve("notebook", ["3"])
    assert choose("top") == "3"


def test_a_session_that_has_ended_is_forgotten():
    here, client = make_three(), Session()
    here.replicas.choose(here.catalog.find("top"), here.links, client)
    pins = here.replicas._pins
    assert len(pins._of_sessions) == 1
    del client
    gc.collect()
    assert len(pins._of_sessions) == 0


def test_names_are_limited_in_number_and_the_one_not_used_for_longest_is_forgotten(monkeypatch):
    monkeypatch.setattr(replicas, "MAX_PINNED", 2)
    pins = replicas._Pins()
    pins.set("a", "notebook", "1")
    pins.set("b", "notebook", "2")
    assert pins.find("a", "notebook") == "1"
    pins.set("c", "notebook", "3")
    assert [pins.find(name, "notebook") for name in "abc"] == ["1", None, "3"]
    assert pins.find("a", "another notebook") is None


async def due_timers():
    """Wait until the loop has called what was due."""
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(0, done.set)
    await done.wait()


@pytest.mark.anyio
async def test_the_same_call_as_one_that_goes_on_is_made_where_that_is(monkeypatch):
    monkeypatch.setattr(messages, "HOLD_SECONDS", 0.0)
    here = make_three()

    def choose():
        return here.replicas.choose(here.catalog.find("top"), here.links, None, "call").id

    assert choose() == "1"
    here.links["1"].open_calls = 9
    assert choose() == "1"
    here.replicas.serve("notebook", ["2", "3"])
    assert choose() == "1"  # which is there for such calls only
    here.replicas.forget_kept(here.catalog.find("top"), "call", lambda: False)
    await due_timers()
    assert choose() == "1"  # its client did not take the result
    here.replicas.forget_kept(here.catalog.find("top"), "call", lambda: True)
    assert choose() == "1"  # nor may this one's
    await due_timers()
    assert choose() == "1"  # because it came before
    here.replicas.forget_kept(here.catalog.find("top"), "call", lambda: True)
    await due_timers()
    assert choose() == "2"


def test_kernels_that_do_not_serve_change_nothing_that_clients_see():
    here = Served("old", "new", serving=["old"])
    here.offer("old", tool("top"))
    assert not here.offer("new", tool("top"), tool("extra"))
    assert here.call("top") == "old"
    assert here.replicas.serve("notebook", ["new"])
    assert here.names == ["top", "extra"]
    assert here.call("top") == "new"
    assert not here.lose("old")
    here.replicas.remove("old")
    assert here.call("top") == "new"


def test_an_ordinary_kernel_is_not_affected_by_replicas():
    here = Served()
    assert here.offer("1", tool("top", revision="a"))
    entry = here.catalog.find("top")
    assert entry.kernel_id == here.replicas.find_entry_id("1") == "1"
    assert here.replicas.choose(entry, here.links).id == "1"
    assert here.replicas.find_revision(entry, "1") == "a"
    assert here.lose("1")
    assert here.names == []
    with pytest.raises(KernelGone, match="'top' is gone"):
        here.replicas.choose(entry, here.links)
