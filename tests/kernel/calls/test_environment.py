"""What a call prints, displays and logs goes to its capture; outside of it nothing changes."""

import asyncio
import builtins
import contextlib
import io
import logging
import sys

import pytest
from IPython.core import interactiveshell
from IPython.core.display_trap import DisplayTrap

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.calls.capture import Capture
from mcp_notebook.kernel.results.outputs import Displayed, Printed
from mcp_notebook.kernel.tools.context import Client

TQDM = pytest.importorskip("tqdm.std").tqdm


class Stream(io.StringIO):
    """A stream that is written in Python, as ipykernel's."""


def say(text):
    sys.stdout.write(text)


def test_prints_and_displays_of_a_call_go_to_its_capture(environment, shell):
    capture = Capture()
    with contextlib.redirect_stdout(Stream()) as stdout:
        say("before ")
        with environment.surround(capture):
            say("within")
            shell.display_pub.publish({"text/plain": "shown within"})
        say("after")
    shell.display_pub.publish({"text/plain": "shown after"})
    assert stdout.getvalue() == "before after"
    assert capture.outputs == (Printed("within"), Displayed({"text/plain": "shown within"}))
    assert [output["data"] for output in shell.display_pub.outputs] == [
        {"text/plain": "shown after"}
    ]


def test_calls_that_overlap_keep_their_outputs_apart(environment, loop):
    captures = [Capture(), Capture()]

    async def call(number, first, second):
        with environment.surround(captures[number]):
            say(str(number))
            first.set()
            await second.wait()
            say(str(number))

    async def both():
        events = asyncio.Event(), asyncio.Event()
        await asyncio.gather(call(0, *events), call(1, *reversed(events)))

    with contextlib.redirect_stdout(Stream()) as stdout:
        loop.run_until_complete(both())
    assert [capture.outputs for capture in captures] == [(Printed("0"),) * 2, (Printed("1"),) * 2]
    assert stdout.getvalue() == ""


def test_records_are_taken_only_from_calls_whose_logs_are_read(environment):
    sent = []
    for capture in (Capture(), Capture(Client(send_log=sent.append))):
        with environment.surround(capture):
            logging.getLogger("sales").error("odd rows")
        assert capture.outputs == ()
    assert [(message.level, message.text) for message in sent] == [("error", "odd rows")]


def test_patches_stay_from_call_to_call_and_a_cell_finds_none(environment, shell):
    def call(within=lambda: None):
        with environment.route_outputs(Capture()):
            within()
            with pytest.raises(ToolError):
                shell.ask_exit()
            with pytest.raises(ToolError):
                input()
        assert builtins.input is asking  # ipykernel would save ours, and restore it after a cell
        return shell.ask_exit

    original, asking = shell.ask_exit, builtins.input
    assert call() is original  # a cell runs
    environment.end_cell()
    ours = call()
    assert ours is not original
    assert call() is ours
    assert call(environment.begin_cell) is original  # the call outlasts the cell's beginning
    environment.end_cell()
    shell.ask_exit = another = lambda: "another"  # by a thread of the user's, say
    assert call()() == "another"
    environment.begin_cell()
    assert shell.ask_exit is another


def test_what_would_end_the_kernel_or_wait_for_input_is_refused_within_a_call(environment, loop):
    stopped = []
    loop.call_soon(stopped.append, True)
    with environment.surround(Capture()):
        for refused in (input, loop.stop):
            with pytest.raises(ToolError, match="The tool asked"):
                refused()
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert stopped


def test_all_is_put_back_when_it_is_closed(environment, shell, loop):
    def state():
        return {
            "stdout": type(sys.stdout),
            "input": builtins.input,
            "publish": shell.display_pub.publish,
            "format": shell.display_formatter.format,
            "exit": shell.ask_exit,
            "payload": shell.payload_manager.write_payload,
            "value": DisplayTrap.__enter__,
            "command": interactiveshell.system,
            "stop": loop.stop,
            "task": loop.create_task,
            "logs": logging.Logger.callHandlers,
            "bars": vars(TQDM).copy(),
            "imports": list(sys.meta_path),
        }

    with contextlib.redirect_stdout(Stream()):
        before = state()
        with environment.surround(Capture(Client(send_log=print))):
            within = state()
        environment.close()
        assert state() == before
    assert [name for name in before if within[name] == before[name]] == []
