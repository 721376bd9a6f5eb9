"""The states that bring answers back: for one request, once, and not for ever."""

import pytest

from mcp_notebook.bridge.questions import request_states as consent_states
from mcp_notebook.bridge.questions.request_states import (
    ConsentStates,
    identify_request,
    is_consent_state,
)
from mcp_notebook.errors import UnknownState


def test_a_state_is_redeemed_once_and_for_its_own_request_only():
    states = ConsentStates()
    state = states.issue("request", "tool 1", 60)
    assert is_consent_state(state)
    assert not is_consent_state("a-state_of-a-parked_call")
    assert not is_consent_state(None)
    with pytest.raises(UnknownState):
        states.redeem(state, "another request")
    answer = states.redeem(state, "request")
    assert (answer.tool, answer.is_expired) == ("tool 1", False)
    with pytest.raises(UnknownState):
        states.redeem(state, "request")


def test_a_state_that_was_changed_or_made_elsewhere_is_refused():
    states = ConsentStates()
    state = states.issue("request", "tool", 60)
    head, middle, tail = state[:-40], state[-40], state[-39:]
    changed = [
        f"{head}{'A' if middle != 'A' else 'B'}{tail}",
        state[:-1],
        f"{state}A",
        "consent.",
        "consent.v1.",
        "consent.v1.\ud800é",
        ConsentStates().issue("request", "tool", 60),
    ]
    for other in changed:
        with pytest.raises(UnknownState):
            states.redeem(other, "request")
    assert not states.redeem(state, "request").is_expired


def test_a_state_expires():
    states = ConsentStates()
    assert states.redeem(states.issue("request", "tool", 0), "request").is_expired


def test_open_questions_take_no_memory_and_used_ones_little(monkeypatch):
    monkeypatch.setattr(consent_states, "MAX_USED", 10)
    states = ConsentStates()
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


def test_requests_that_differ_are_told_apart():
    same = identify_request("owner", "drop", arguments={"a": 1, "b": 2})
    assert identify_request("owner", "drop", arguments={"b": 2, "a": 1}) == same
    large = identify_request("owner", "drop", arguments=b'{"a":1,"b":2}')
    stand_in = {"sha256": "8ab6a9a2f0b1"}
    others = [
        identify_request("other", "drop", arguments={"a": 1, "b": 2}),
        identify_request("owner", "drop", arguments={"a": True, "b": 2}),
        identify_request("owner", "drop", arguments={"a": "\ud800"}),
        identify_request("owner", "drop", arguments=stand_in),
        large,
    ]
    assert len({same, *others}) == 6
