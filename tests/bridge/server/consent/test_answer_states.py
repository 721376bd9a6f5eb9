"""The states that bring answers back: for one request, once, and not for ever."""

import pytest

from mcp_notebook.bridge.server.consent.answer_states import AnswerStates
from mcp_notebook.errors import UnknownState


def test_a_state_is_redeemed_once_and_for_its_own_request_only():
    states = AnswerStates()
    state = states.issue("request", "tool 1", 60)
    assert state.startswith("consent.")
    with pytest.raises(UnknownState):
        states.redeem(state, "another request")
    answer = states.redeem(state, "request")
    assert (answer.tool, answer.is_expired) == ("tool 1", False)
    with pytest.raises(UnknownState):
        states.redeem(state, "request")


def test_a_state_that_was_changed_or_made_elsewhere_is_refused():
    states = AnswerStates()
    state = states.issue("request", "tool", 60)
    head, middle, tail = state[:-40], state[-40], state[-39:]
    changed = [
        f"{head}{'A' if middle != 'A' else 'B'}{tail}",
        state[:-1],
        f"{state}A",
        "consent.",
        "consent.v1.",
        "consent.v1.\ud800é",
        AnswerStates().issue("request", "tool", 60),
    ]
    for other in changed:
        with pytest.raises(UnknownState):
            states.redeem(other, "request")
    assert not states.redeem(state, "request").is_expired


def test_a_state_expires():
    states = AnswerStates()
    assert states.redeem(states.issue("request", "tool", 0), "request").is_expired


def test_open_questions_take_no_memory_and_used_ones_little():
    states = AnswerStates(max_used=10)
    oldest = states.issue("request", "tool", 60)
    used = [states.issue("request", "tool", 60) for _ in range(50)]
    assert states._used == []
    for state in used:
        assert not states.redeem(state, "request").is_expired
    assert len(states._used) == 10
    # What is no longer remembered is not taken a second time, either.
    assert states.redeem(used[0], "request").is_expired
    assert states.redeem(oldest, "request").is_expired
    with pytest.raises(UnknownState):
        states.redeem(used[-1], "request")
