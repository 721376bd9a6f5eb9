"""The log of calls: what it has of each call, what it never has, whom it tells."""

import json
import threading

import pytest
from limits_files import set_limits
from live import Link, kernel_with, record_of
from pydantic import SecretStr

from mcp_notebook.content import Image, Result, Text
from mcp_notebook.errors import Cancelled
from mcp_notebook.kernel.calls.active_call import ActiveCall, StopRequest
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.call_log import (
    MAX_ARGUMENTS,
    MAX_BYTES,
    MAX_COUNTED,
    MAX_UNKNOWN,
    OTHERS,
    CallLog,
    copy_small,
    leave_out_large,
    make_entry,
)
from mcp_notebook.kernel.calls.outcome import CallConverter
from mcp_notebook.kernel.calls.stopping import Stopper
from mcp_notebook.kernel.tools.context import Client, ClientProgram
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.text.redaction import MASK
from mcp_notebook.wire import messages

RESULT = Result([Text("five"), Image(b"12345"), Text("and more")], structured={"result": 5})
WRONG = Result([Text("It failed.")], is_error=True)


def add(a: int, b: int = 0, c: str = "", token: SecretStr | None = None) -> int:
    """Add."""
    return a + b


@pytest.fixture
def log():
    log = CallLog()
    log.most = 3
    return log


@pytest.fixture
def make_call(log):
    """Return what makes a call, and has the log note it."""
    declared = make_tool(add)

    def make_call(tool="add", client=None, **arguments):
        program = Client() if client is None else Client(program=ClientProgram(*client))
        call = ActiveCall(
            tool,
            arguments,
            reply=lambda _: None,
            client=program,
            declared=declared if tool == "add" else None,
        )
        log.add(call)
        return call

    return make_call


def run(call, result=RESULT):
    call.begin(lambda: None)
    call.answer(CallState.FAILED if result.is_error else CallState.DONE, result)


@pytest.mark.smoke
def test_a_call_is_in_the_log_from_its_arrival_to_its_end(log, make_call):
    call = make_call(client=("editor", "1.2"), a=1)
    [entry] = log.list_calls()
    assert (entry.number, entry.state, entry.run_seconds) == (1, CallState.QUEUED, 0)
    assert (entry.tool, entry.client_label, entry.arguments) == ("add", "editor 1.2", {"a": 1})
    call.begin(lambda: None)
    assert log.find(1).state is CallState.RUNNING
    call.answer(CallState.DONE, RESULT)
    entry = log.find(1)
    assert entry.state is CallState.DONE
    assert (entry.size, entry.kinds) == (17, ("text", "image/png", "structured"))
    assert entry.queue_seconds == call.queue_seconds
    assert entry.run_seconds == call.run_seconds
    assert not entry.has_failed
    assert log.find_result(1) is RESULT


def test_an_error_is_in_the_log_without_secrets(log, make_call):
    call = make_call(a=1, token="hunter22")
    run(call, Result([Text("Nobody knows hunter22.")], is_error=True))
    entry = log.find(1)
    assert (entry.state, entry.has_failed) == (CallState.FAILED, True)
    assert entry.error == f"Nobody knows {MASK}."
    assert entry.arguments == {"a": 1, "token": MASK}
    assert "hunter22" not in repr(log.list_calls())


def test_arguments_of_a_tool_that_nobody_knows_may_be_secrets(log, make_call):
    run(make_call("gone", password="hunter22"), WRONG)
    assert log.find(1).arguments == {"password": MASK}


def test_what_is_a_secret_stays_one_when_the_tool_changes_while_its_call_waits(log, make_call):
    call = make_call(a=1, token="hunter22")
    call.set_target(make_tool(lambda a, token: (a, token), variable="add"))
    run(call)
    assert log.find(1).arguments == {"a": 1, "token": MASK}


def test_what_a_tool_does_to_its_arguments_is_not_in_the_log(log, make_call):
    numbers = [1, 2]
    call = make_call(a=numbers)
    numbers.append(object())
    run(call)
    assert log.find(1).arguments == {"a": [1, 2]}


def test_large_arguments_are_named(log, make_call):
    run(make_call(a=list(range(10_000)), b=5, c="x" * 20_000))
    entry = log.find(1)
    assert entry.arguments == {"a": "<large array>", "b": 5, "c": "<large text>"}
    assert not entry.is_complete


def test_a_call_that_is_withdrawn_is_in_the_log_with_its_reason(log, make_call, queue, converter):
    call = make_call()
    call.lock = queue.lock
    queue.add(call)
    stopper = Stopper(queue, CallConverter(converter), None)
    stopper.stop(call, StopRequest(CallState.CANCELLED, Cancelled("No longer wanted.")))
    entry = log.find(1)
    assert (entry.state, entry.run_seconds) == (CallState.CANCELLED, 0)
    assert "No longer wanted." in entry.error


def test_the_log_keeps_the_last_calls_that_ended_and_all_that_have_not(log, make_call):
    first = make_call()
    for _ in range(5):
        run(make_call())
    assert [entry.number for entry in log.list_calls()] == [1, 4, 5, 6]
    assert log.find(2) is log.find_result(2) is None
    run(first)
    assert [entry.number for entry in log.list_calls()] == [1, 5, 6]
    assert log.count_calls().calls == 6


def test_results_are_kept_as_far_as_their_bytes_go(log, make_call):
    large = Result([Text("x" * (MAX_BYTES // 4 - 1_000))], structured=[])
    log.most = 10
    for _ in range(6):
        run(make_call(), large)
    too_large = Result([Text("x" * (MAX_BYTES // 4 + 1))])  # more than a quarter
    run(make_call(), too_large)
    kept = [number for number in range(1, 8) if log.find_result(number)]
    assert kept == [3, 4, 5, 6]
    assert len(log.list_calls()) == 7


def test_structured_content_counts_although_it_has_no_text(log, make_call):
    run(make_call(), Result([Text("")], structured=[[1.5] * 1_000] * 400))
    assert log.find_result(1) is None


def test_calls_are_counted_by_tool_and_client(log, make_call):
    for client in (("editor", "1"), ("editor", "1"), ("", "")):
        run(make_call(client=client))
    run(make_call("gone"), WRONG)
    counts = log.count_calls()
    assert (counts.calls, counts.failures) == (4, 1)
    assert counts.tools == {"add": 3, "gone": 1}
    assert counts.tool_failures == {"gone": 1}
    assert counts.clients == {"editor 1": 2, "unknown client": 2}


def test_clients_that_make_up_names_fill_no_memory(log, make_call):
    for number in range(MAX_COUNTED + 3):
        run(make_call(f"tool_{number}", client=(f"client {number}", "")), WRONG)
    for names, name in ((log.count_calls().tools, "tool_"), (log.count_calls().clients, "client ")):
        assert names == {f"{name}{number}": 1 for number in range(MAX_COUNTED)} | {OTHERS: 3}


def test_calls_of_no_tool_displace_no_real_ones_and_take_no_names_in_the_counts(log, make_call):
    run(make_call())
    for number in range(MAX_COUNTED + 3):
        log.note_unknown(ClientProgram("x", ""), f"made_up_{number}", {}, "Unknown tool.")
    run(make_call())
    first, *guesses, last = log.list_calls()
    assert [first.tool, last.tool] == ["add", "add"]
    assert log.find_result(first.number) is not None
    assert len(guesses) == MAX_UNKNOWN
    assert guesses[-1].tool == f"made_up_{MAX_COUNTED + 2}"
    assert log.find(guesses[-1].number) == guesses[-1]
    assert log.count_calls().tools == {"add": 2, OTHERS: MAX_COUNTED + 3}


def test_an_observer_is_called_at_each_step_and_one_that_fails_harms_nothing(log, make_call):
    def fail():
        raise RuntimeError

    def look():
        seen.append([call.state for call in log.list_calls()])

    seen, replies = [], []
    log.subscribe(fail)
    log.subscribe(look)
    call = make_call()
    call.reply = lambda result: replies.append((result, len(seen)))
    call.begin(lambda: None)
    call.wait_for("the user's answer")
    call.resume()
    call.answer(CallState.DONE, RESULT)
    call.answer(CallState.FAILED, WRONG)
    states = (CallState.QUEUED, CallState.RUNNING, CallState.WAITING, CallState.RUNNING)
    assert seen == [[state] for state in (*states, CallState.DONE)]
    assert replies == [(RESULT, 4)]  # the client waits for no observer
    log.unsubscribe(look)
    run(make_call())
    assert len(seen) == 5


def test_many_threads_may_call_at_once(make_call, log):
    log.most = 50
    barrier = threading.Barrier(8)

    def many():
        barrier.wait()
        for _ in range(50):
            run(make_call(a=1))
            log.list_calls()

    threads = [threading.Thread(target=many) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [entry.number for entry in log.list_calls()]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 50
    make_call()
    assert log.list_calls()[-1].number == 401
    assert log.count_calls().calls == 400


# -- in a kernel -----------------------------------------------------------------------------------

TOOLS = """%%mcp_tool --read-only
def square(x: int) -> int:
    "Square."
    return x * x
"""
MORE_TOOLS = """%%mcp_tool
import asyncio
from pydantic import SecretStr

async def forever() -> None:
    "Run for ever."
    await asyncio.Event().wait()

def log_in(user: str, password: SecretStr) -> str:
    "Log in."
    raise PermissionError(f"{user} has the password {password.get_secret_value()}")
"""
IMPATIENT = """%%mcp_tool --timeout 0.05
async def never() -> None:
    "Run for too long."
    await asyncio.Event().wait()
"""
CONFIRMED = """%%mcp_tool --confirm
def delete() -> None:
    "Delete."
"""
SHOW = """
import json, msgspec
log = get_ipython()._mcp_notebook.invoker.log
print(json.dumps(msgspec.to_builtins(log.list_calls())))
"""


kernel = kernel_with(TOOLS, MORE_TOOLS, IMPATIENT, CONFIRMED)


def last_entry(kernel):
    return json.loads(kernel.ok(SHOW).stdout)[-1]


def test_the_client_of_a_call_is_what_the_bridge_says(kernel, link):
    for client, label in (
        (messages.ClientInfo(name="ed\x1b[1mitor\n", version="2"), "ed"),
        (None, ""),
    ):
        given = {} if client is None else {"client": client}
        link.send(messages.Call(id=next(link.ids), tool="log_in", arguments={}, **given))
        link.result()
        assert last_entry(kernel)["client"]["name"].startswith(label)
    kernel.ok("%mcp call square x=3")
    assert last_entry(kernel)["client"] is None


def test_a_cancelled_call_and_one_that_took_too_long_are_in_the_log(kernel, link):
    link.send(messages.Cancel(id=link.start("forever"), reason="Enough."))
    link.result()
    entry = last_entry(kernel)
    assert entry["state"] == "cancelled"
    assert "Enough." in entry["error"]
    link.call("never")
    entry = last_entry(kernel)
    assert entry["state"] == "timed out"
    assert entry["run_seconds"] > 0


def test_no_secret_is_in_the_log_of_a_kernel(kernel, link):
    link.call("log_in", user="me", password="hunter22")
    entry = last_entry(kernel)
    assert entry["arguments"] == {"user": "me", "password": MASK}
    assert "hunter22" not in kernel.ok(SHOW).text


def test_the_log_survives_the_reload_of_the_extension(kernel):
    with Link(record_of(kernel)) as link:
        link.call("square", x=1)
    before = last_entry(kernel)
    kernel.ok("%reload_ext mcp_notebook")
    assert last_entry(kernel) == before
    with Link(record_of(kernel)) as link:
        link.call("square", x=2)
    assert last_entry(kernel)["number"] == before["number"] + 1


def test_a_call_that_is_refused_because_the_kernel_is_busy_is_in_the_log(kernel):
    kernel.ok(f"import os; os.environ |= {set_limits(kernel.home, max_waiting_calls=1)}")
    kernel.ok("%reload_ext mcp_notebook")
    with Link(record_of(kernel)) as link:
        first = link.start("forever")
        link.call("log_in")
        entry = last_entry(kernel)
        link.send(messages.Cancel(id=first))
        link.result()
    assert (entry["tool"], entry["state"], entry["run_seconds"]) == ("log_in", "failed", 0)
    assert "The kernel is busy" in entry["error"]


@pytest.mark.parametrize(
    "arguments",
    [
        {f"a{number}": number for number in range(10_000)},
        {"a" * 50_000: 1},
        {"a": [{"b": "c" * 500}] * 100},
    ],
)
def test_whatever_is_large_is_small_in_the_log(arguments):
    call = ActiveCall("a", arguments, reply=lambda _: None)
    call.shown_arguments = arguments
    call.move(CallState.FAILED)
    assert copy_small(arguments) is None
    entry = leave_out_large(make_entry(call, 0.0, Result()))
    assert not entry.is_complete
    assert len(repr(entry.arguments)) <= 2 * MAX_ARGUMENTS
