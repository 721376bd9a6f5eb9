"""The states of a call: the table, and what is said of a call that runs or waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.kernel.calls.call import ENDED, MOVES, Call, CallState, IllegalMove, describe

states = st.sampled_from(CallState)


def in_state(state, **fields):
    """Return a call that went to this state by the shortest way."""
    call = Call("top", **fields)
    way = {
        CallState.QUEUED: (),
        CallState.RUNNING: (CallState.RUNNING,),
        CallState.WAITING: (CallState.RUNNING, CallState.WAITING),
        CallState.DONE: (CallState.RUNNING, CallState.DONE),
    }.get(state, (state,))
    for step in way:
        call.move(step)
    return call


@given(states, states)
def test_a_call_moves_as_the_table_says_and_no_other_way(start, to):
    call = in_state(start)
    since = call.since
    if to in MOVES[start]:
        call.move(to)
        assert call.state is to
        assert call.since >= since
    else:
        with pytest.raises(IllegalMove, match=f"from {start} to {to}"):
            call.move(to)
        assert (call.state, call.since) == (start, since)


def test_a_call_counts_how_long_it_is_in_its_state_and_not_how_long_it_is_there():
    call = Call("top", arrived=-1000.0)
    assert (
        describe(call, [call], cell_since=None, now=0)
        == "waiting: the kernel's main thread is busy"
    )
    call.move(CallState.RUNNING)
    assert describe(call, [call], cell_since=None, now=call.since) == "running for 0 s"
    assert call.since - call.arrived > 1000
    call.since = -500.0
    call.move(CallState.WAITING)
    assert call.since > -500.0


@given(st.lists(states))
def test_a_call_ends_once_whatever_is_tried(tries):
    call = Call("top")
    ends = []
    for to in tries:
        try:
            call.move(to)
        except IllegalMove:
            continue
        ends += [to] if to in ENDED else []
    assert len(ends) <= 1
    assert call.has_ended == bool(ends)


def test_every_call_can_be_stopped_until_it_has_ended():
    for state in set(CallState) - ENDED:
        assert {CallState.CANCELLED, CallState.TIMED_OUT, CallState.LOST} <= MOVES[state]


def test_a_running_call_is_told_with_its_time():
    call = in_state(CallState.RUNNING)
    assert describe(call, [call], cell_since=None, now=call.since + 7) == "running for 7 s"


def test_a_call_behind_a_cell_is_told_how_long_the_cell_runs_and_who_is_before():
    first, second, third = Call("a"), Call("b"), Call("c")
    said = describe(third, [first, second, third], cell_since=100, now=112)
    assert said == "waiting: a cell has been running for 12 s; 2 calls before this one"


def test_a_call_behind_another_one_is_told_whose_and_how_to_take_no_turns():
    running, call = in_state(CallState.RUNNING), Call("b")
    said = describe(call, [running, call], cell_since=None, now=running.since + 7)
    hint = "(tools with `--run thread` take no turns)"
    assert said == f"waiting: a call of 'top' has been running for 7 s {hint}"


def test_a_call_behind_one_that_does_not_stop_is_told_so():
    stuck, call = in_state(CallState.CANCELLED), Call("b")
    stuck.is_stopping = True
    said = describe(call, [stuck, call], cell_since=1, now=stuck.since + 5)
    assert said == "waiting: a stopped call of 'top' has not reacted for 5 s"
    assert describe(stuck, [stuck, call], cell_since=None, now=stuck.since + 5).startswith(
        "still stopping"
    )


def test_the_times_of_a_call_are_those_of_its_turn_and_of_its_function():
    call = Call("top", arrived=-1000.0)
    call.move(CallState.RUNNING)
    assert call.queue_seconds == call.began + 1000.0
    call.began -= 60
    call.move(CallState.WAITING)
    call.move(CallState.RUNNING)
    call.move(CallState.DONE)
    assert call.run_seconds >= 60
    assert call.queue_seconds + call.run_seconds == pytest.approx(call.since + 1000.0)


def test_a_call_that_is_stopped_before_it_begins_has_only_waited():
    call = Call("top", arrived=-1000.0)
    call.move(CallState.CANCELLED)
    assert call.queue_seconds >= 1000
    assert call.run_seconds == 0


def test_a_call_runs_code_from_its_start_until_its_code_has_ended():
    call = Call("rain")
    assert not call.runs_code
    call.move(CallState.RUNNING)
    assert call.runs_code
    call.is_stopping = True
    call.move(CallState.CANCELLED)
    assert call.runs_code  # it is answered, and its code does not react
    call.is_stopping = False
    assert not call.runs_code


def test_a_call_that_is_answered_after_its_code_has_ended_runs_none():
    call = Call("rain")
    call.move(CallState.RUNNING)
    call.move(CallState.DONE)
    assert not call.runs_code
