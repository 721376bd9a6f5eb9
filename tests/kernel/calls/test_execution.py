"""The code of one call, from its arguments to its result, in the test's own process."""

import os
import signal
import sys

import pytest
from live import text_of

from mcp_notebook import Context, Secret
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import Cancelled, ToolError
from mcp_notebook.kernel.calls.active_call import INTERRUPTED, ActiveCall, StopRequest
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.capture import Capture
from mcp_notebook.kernel.calls.interrupts import InterruptGate
from mcp_notebook.kernel.tools.context import NO_CLIENT, Client
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import PromptOptions, ToolOptions

UNWANTED = StopRequest(CallState.CANCELLED, Cancelled("No longer wanted."))


def double(x: int) -> int:
    """Double."""
    sys.stdout.write("doubling")
    return 2 * x


def leave() -> None:
    """Try to end the kernel."""
    raise SystemExit(3)


def interrupt() -> None:
    """Do what "Interrupt" does."""
    os.kill(os.getpid(), signal.SIGINT)


async def triple(x: int) -> int:
    """Triple."""
    return 3 * x


@pytest.fixture
def start(queue, registry):
    """Declare a function as a tool, and return a call of it that waits."""

    def start_call(function, client=NO_CLIENT, **arguments):
        registry.add(make_tool(function, ToolOptions()))
        call = ActiveCall(
            function.__name__,
            arguments=arguments,
            reply=lambda _: None,
            lock=queue.lock,
            client=client,
            declared=registry.get(function.__name__),
            capture=Capture(client),
        )
        queue.add(call)
        return call

    return start_call


def run(execution, call, wait=None):
    gate = InterruptGate()
    assert execution.begin(call, gate.interrupt)
    return execution.run(call, gate, wait)


def test_the_result_has_the_value_after_what_the_code_printed(execution, start):
    call = start(double, x=4)
    assert run(execution, call) == Result([Text("doubling"), Text("8")])
    assert call.state is CallState.RUNNING


def test_a_call_whose_tool_became_a_prompt_while_it_waited_runs_nothing(execution, start, registry):
    call = start(double, x=4)
    registry.add(make_tool(double, PromptOptions()))
    result = run(execution, call)
    assert result.is_error
    assert text_of(result).startswith("'double' is a prompt, not a tool: ")


def test_a_list_that_was_used_like_an_array_is_told_of_the_type_hint_to_write(execution, start):
    def measure(array):
        return array.shape

    def count_rows(x):
        """Count."""
        return measure(x)[0]

    text = text_of(run(execution, start(count_rows, x=[1, 2])))
    first, second, *_ = text.splitlines()
    assert first == "AttributeError: 'list' object has no attribute 'shape'"
    assert second.startswith("Nothing says the type of `x`, so lists stay lists: ")


@pytest.mark.parametrize(("confirmed", "said"), [("", "nobody was asked"), ("x", "was changed")])
def test_an_unconfirmed_call_does_not_run(execution, start, confirmed, said):
    call = start(double, x=2)
    call.client = Client(confirmed=confirmed)
    execution._registry.add(make_tool(double, ToolOptions(confirm=True)))
    result = run(execution, call)
    assert result.is_error
    assert said in text_of(result)
    assert "doubling" not in text_of(result)


def test_whatever_the_code_raises_becomes_a_result(execution, start):
    result = run(execution, start(leave))
    assert result.is_error
    assert "SystemExit: 3" in text_of(result)


def test_an_interrupt_while_the_code_runs_is_the_users(execution, start):
    call = start(interrupt)
    result = run(execution, call)
    assert result.is_error
    assert text_of(result) == INTERRUPTED
    assert call.is_interrupted


def test_a_call_that_was_stopped_while_it_waited_does_not_begin(execution, start, queue):
    call = start(double, x=4)
    assert queue.withdraw(call, UNWANTED)
    assert not execution.begin(call, InterruptGate().interrupt)


def test_a_call_that_is_stopped_before_its_code_takes_interrupts_does_not_run_it(execution, start):
    call, gate = start(double, x=4), InterruptGate()
    assert execution.begin(call, gate.interrupt)
    call.request_stop(UNWANTED)
    assert text_of(execution.run(call, gate, None)) == "No longer wanted."


def test_a_coroutine_is_left_to_who_waits_for_it(execution, start):
    def wait(_call, coroutine):
        with pytest.raises(StopIteration) as ended:
            coroutine.send(None)
        return ended.value.value

    assert run(execution, start(triple, x=4), wait) == 12


PASSWORD = "hunter2-tr0ub4dor"


def log_in(password: Secret[str], ctx: Context, way: str) -> str:
    """Log in, and say too much."""
    secret = password.get_secret_value()
    match way:
        case "print":
            sys.stdout.write(f"[{secret[:5]}")
            sys.stdout.write(f"{secret[5:]}] {'x' * 150}{secret}{'x' * 150}{secret}\n")
        case "progress":
            ctx.progress(1, 2, f"trying {secret}")
        case "log":
            ctx.log(f"trying {secret}")
        case "raise":
            raise OSError(f"401 for https://x/?key={secret}") from KeyError(secret)
        case "group":
            raise ExceptionGroup("all", [ValueError(secret)])
        case "generate":
            return (item / 0 for item in [secret])
        case "tool error":
            raise ToolError(f"no {secret}")
    return repr(password)


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("print", "[**********] xxx"),
        ("progress", "trying **********"),
        ("log", "trying **********"),
        ("raise", "OSError: 401 for https://x/?key=**********"),
        ("group", "ValueError: **********"),
        ("generate", "TypeError: unsupported operand"),
        ("tool error", "no **********"),
        ("return", "Secret('**********')"),
    ],
)
def test_a_secret_is_in_nothing_that_a_call_says(execution, start, way, said):
    told = []
    client = Client(report=told.append, send_log=told.append)
    call = start(log_in, client=client, password=PASSWORD, way=way)
    everything = f"{run(execution, call)} {told}"
    assert said in everything
    assert PASSWORD not in everything
    assert PASSWORD[:8] not in everything


def test_what_a_tool_returns_is_its_own_affair(execution, start):
    def reveal(password: Secret[str]) -> str:
        return password.get_secret_value()

    assert text_of(run(execution, start(reveal, password=PASSWORD))) == PASSWORD


def test_secrets_are_those_of_the_tool_that_runs(execution, start, registry):
    """It was declared anew while the call waited."""

    def log_in(password: str) -> None:
        raise ValueError(getattr(password, "get_secret_value", str)())

    call = start(log_in, password=PASSWORD)
    open_kind = log_in.__annotations__
    log_in.__annotations__ = open_kind | {"password": Secret[str]}
    registry.add(make_tool(log_in))
    assert PASSWORD not in text_of(run(execution, call))
