"""What a tool can say of its call; without a kernel."""

import math

import pytest

from mcp_notebook import Context
from mcp_notebook.errors import Cancelled
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema
from mcp_notebook.kernel.tools.context import LEVELS, LogMessage, Update


@pytest.fixture
def said():
    return []


@pytest.fixture
def context(said):
    return Context("train", report=said.append, send_log=said.append)


def test_progress_is_reported_with_what_is_known(context, said):
    context.progress(1)
    context.progress(2, 10, "epochs")
    assert said == [Update(1, None, None), Update(2, 10, "epochs")]


@pytest.mark.parametrize("done", ["1", None, True, 1j])
def test_progress_must_be_a_number(context, said, done):
    with pytest.raises(TypeError, match="done must be a number"):
        context.progress(done)
    assert said == []


def test_progress_takes_numpys_numbers_and_what_is_not_finite(context, said):
    numpy = pytest.importorskip("numpy")
    context.progress(numpy.int64(3), numpy.float32(4))
    context.progress(math.nan, math.inf)
    assert said[0] == Update(3.0, 4.0, None)


def test_track_tells_how_many_items_are_done(context, said):
    assert list(context.track("abc", message="letters")) == ["a", "b", "c"]
    assert [(update.done, update.total) for update in said] == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_a_call_that_shall_stop_says_so_and_track_stops(said):
    reason = []
    context = Context("train", report=said.append, stopped=lambda: reason[0] if reason else None)
    assert not context.cancelled
    context.raise_if_cancelled()
    items = context.track(range(10))
    next(items)
    reason.append("No longer wanted.")
    with pytest.raises(Cancelled, match="No longer wanted"):
        next(items)
    assert context.cancelled
    assert said[-1].done == 1


def test_log_messages_have_mcps_levels(context, said):
    context.log("begins")
    context.log({"loss": 0.5}, level="warning")
    assert said == [LogMessage("info", "begins"), LogMessage("warning", "{'loss': 0.5}")]
    with pytest.raises(ValueError, match=r"level must be one of debug, info, .* not 'warn'"):
        context.log("x", level="warn")
    assert list(LEVELS.values()) == sorted(LEVELS.values())


def test_a_context_of_no_call_lets_one_try_a_tool_in_a_cell():
    context = Context()
    context.progress(1, 2)
    context.log("nobody hears this")
    assert list(context.track([1, 2])) == [1, 2]
    assert not context.cancelled
    assert not context.wants_progress
    assert repr(context) == "<Context of no call>"


def test_clients_do_not_see_the_parameter():
    def train(epochs: int, ctx: Context, other: Context | None = None) -> None:
        """Train."""

    schema = read_function_schema(train, hidden_types=(Context,))
    assert list(schema.input_schema["properties"]) == ["epochs"]
    assert schema.injected == ("ctx", "other")
