"""`mcp-notebook stop`: which call is meant, what is listed, what is said."""

import os
import re
from contextlib import contextmanager

import anyio
import pytest
from kernel_stand_ins import peer, welcome
from live import Link, live_kernel, record_of, soon, text_of
from msgspec import structs

from mcp_notebook.cli import main
from mcp_notebook.cli.stop import REASON, stop_call
from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.discovery.records import list_live_records, write_record
from mcp_notebook.errors import CallError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio

SPIN = """%%mcp_tool
import time
def spin(name: str = ""):
    "Hold the main thread."
    while True:
        time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def sales(module_home):
    with live_kernel(module_home, notebook=str(module_home / "sales.ipynb")) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(SPIN)
        yield kernel


@pytest.fixture
def settings(sales):
    return Settings(home=sales.home / ".mcp-notebook")


@pytest.fixture
async def number(sales, settings, capsys):
    """The number of a call that runs; the test has to stop it."""
    with Link(record_of(sales)) as link:
        client = messages.ClientInfo(name="editor", version="1.2")
        link.send(messages.Call(id=1, tool="spin", arguments={}, client=client))
        listed = None
        while listed is None:
            await stop_call(settings, None)
            line = r"sales:(\d+)\tspin\teditor 1\.2\trunning for \d+ s\n"
            listed = re.fullmatch(line, capsys.readouterr().out)
        yield int(listed[1])
        assert REASON in text_of(link.result())  # each test stops it


@contextmanager
def another_record(settings, **changes):
    """Let the kernel have a second record, as if it were two."""
    (record,) = list_live_records(settings.records_folder)
    path = write_record(settings.records_folder, structs.replace(record, id=make_id(), **changes))
    try:
        yield path
    finally:
        path.unlink()


@pytest.mark.parametrize("name", ["{}", "sales:{}"])
async def test_a_call_is_stopped_by_its_number_or_its_full_name(settings, number, name, capsys):
    await stop_call(settings, name.format(number))
    assert capsys.readouterr().out == f"Stopped sales:{number} (spin).\n"


async def test_a_number_of_two_notebooks_needs_the_notebook(settings, number, capsys):
    with another_record(settings, name="costs"):
        with pytest.raises(CallError, match=f"'{number}' is ambiguous: write one of") as error:
            await stop_call(settings, str(number))
        assert f"sales:{number}" in str(error.value)
        assert f"costs:{number}" in str(error.value)
        await stop_call(settings, f"costs:{number}")
    assert f"Stopped costs:{number}" in capsys.readouterr().out


async def test_two_notebooks_of_one_name_are_told_apart_by_their_kernels(settings, number, capsys):
    (record,) = list_live_records(settings.records_folder)
    with another_record(settings):
        with pytest.raises(CallError, match="is ambiguous: write one of"):
            await stop_call(settings, f"sales:{number}")
        await stop_call(settings, f"{record.id}:{number}")
    assert f"Stopped {record.id}:{number}" in capsys.readouterr().out


async def test_a_call_that_is_not_there_is_an_error_that_names_those_that_are(settings, number):
    for name in ("9999", "sales:9999", f"costs:{number}", "spin", ""):
        with pytest.raises(CallError, match=f"Waiting or running: sales:{number}.") as error:
            await stop_call(settings, name)
        assert f"No call {name!r} is waiting or running" in str(error.value)
    await stop_call(settings, str(number))


async def test_a_kernel_that_does_not_answer_hides_no_other(settings, number, capsys):
    with another_record(settings, name="stuck", socket=str(settings.home / "none.sock")):
        await stop_call(settings, str(number))
    said = capsys.readouterr()
    assert f"Stopped sales:{number}" in said.out
    assert "'stuck' cannot be reached" in said.err


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins listen on Unix sockets")
async def test_kernels_that_hang_are_waited_for_together(home, capsys):
    settings = Settings(home=home)
    call = messages.CallInfo(number=3, tool="top", doing="running for 1 s")
    answer = structs.replace(welcome(), calls=[call])
    async with (
        peer(home, answer, name="one", silent=True) as one,
        peer(home, answer, name="two", silent=True) as two,
        anyio.create_task_group() as tasks,
    ):
        for kernel in (one, two):
            write_record(settings.records_folder, kernel.record)
        tasks.start_soon(stop_call, settings, None)
        with anyio.fail_after(4):  # one is given up after five
            while one.writer is None or two.writer is None:
                await anyio.lowlevel.checkpoint()
        for kernel in (two, one):
            kernel.may_answer.set()
    assert re.findall(r"\w+:\d+", capsys.readouterr().out) == ["one:3", "two:3"]


async def _has_ended(listed):
    return await listed == ("", "No call is waiting or running.\n")


async def test_without_calls_there_is_nothing_to_list(settings, capsys):
    async def list_calls():
        await stop_call(settings, None)
        return capsys.readouterr()

    # One that another test has stopped is listed until its thread has noticed.
    await soon(lambda: _has_ended(list_calls()))
    with pytest.raises(
        CallError, match=r"it may have ended\. No other call is waiting or running\.$"
    ):
        await stop_call(settings, "1")


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        (messages.Goodbye(reason="The kernel was restarted."), "lost: The kernel was restarted."),
        (b"\0\0\0\2[]", "The link to the kernel failed"),
        (b"", "did not report within 0.5 s whether the call ended"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="the stand-ins listen on Unix sockets")
async def test_a_kernel_that_leaves_or_says_nothing_is_one_sentence(home, says, problem):
    settings = Settings(home=home)
    call = messages.CallInfo(number=3, tool="top", doing="running for 1 s")
    async with peer(home, structs.replace(welcome(), calls=[call])) as kernel:
        write_record(settings.records_folder, kernel.record)
        async with anyio.create_task_group() as tasks:

            async def answer():
                while not any(isinstance(each, messages.StopCall) for each in kernel.heard):
                    await anyio.lowlevel.checkpoint()
                kernel.say(says)
                if isinstance(says, messages.Goodbye):
                    kernel.writer.close()

            tasks.start_soon(answer)
            with pytest.raises(CallError, match=problem):
                await stop_call(settings, "3", seconds=0.5)
    (sent,) = (each for each in kernel.heard if isinstance(each, messages.StopCall))
    assert (sent.number, sent.reason, sent.by) == (3, REASON, "you, with `mcp-notebook stop`")


def test_the_command_ends_with_a_failure_if_there_is_no_such_call(settings, monkeypatch, capsys):
    monkeypatch.setenv("MCP_NOTEBOOK_HOME", str(settings.home))
    monkeypatch.setattr("sys.argv", ["mcp-notebook", "stop", "12"])
    with pytest.raises(SystemExit) as end:
        main.main()
    assert end.value.code == 1
    assert "No call '12' is waiting or running" in capsys.readouterr().err
