"""What a call returned or raised, with what it printed: its result."""

# What the linter finds wrong with this class is what it is for.

import pytest

from mcp_notebook.content import Text
from mcp_notebook.errors import Cancelled, CannotElicit
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.outcome import CallConverter


@pytest.fixture
def call():
    call = ActiveCall("a", reply=lambda _: None)
    call.capture.write("printed\n")
    return call


@pytest.fixture
def outcomes(converter):
    return CallConverter(converter)


def texts_of(result):
    return [block.text.strip() for block in result.content]


def test_a_value_comes_after_what_was_printed(outcomes, call):
    result = outcomes.convert_value(call, "a value")
    assert texts_of(result) == ["printed", "a value"]
    assert not result.is_error


def test_an_error_comes_after_what_was_printed(outcomes, call):
    result = outcomes.convert_error(call, ValueError("bad value"))
    assert result.is_error
    printed, text = texts_of(result)
    assert printed == "printed"
    assert "ValueError: bad value" in text


@pytest.mark.parametrize(("undeclared", "missing"), [(True, "elicitation"), (False, None)])
def test_a_client_that_cannot_ask_is_told_which_capability_it_lacks(
    outcomes, call, undeclared, missing
):
    outcomes.convert_error(call, CannotElicit("Nobody can be asked.", undeclared=undeclared))
    assert call.missing_capability == missing


def test_a_stopped_call_says_why_after_what_was_printed(outcomes, call):
    result = outcomes.convert_stop(call, Cancelled("No longer wanted."))
    assert texts_of(result) == ["printed", "No longer wanted."]
    assert result.is_error


def test_awaitables_and_async_generators_are_awaited_and_nothing_else(outcomes):
    async def generator():
        yield 1

    coroutine = outcomes.await_value(ActiveCall("a", reply=lambda _: None), 1)
    assert outcomes.values.is_async(coroutine)
    coroutine.close()
    assert outcomes.values.is_async(generator())
    assert not outcomes.values.is_async([Text("a")])
