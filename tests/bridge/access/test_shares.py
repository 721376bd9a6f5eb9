"""Who has how many of a thing."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.bridge.access.shares import Shares

MOVES = st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), max_size=60)


@given(MOVES, st.integers(1, 4), st.integers(1, 8))
def test_nobody_gets_more_than_its_share_and_what_is_given_back_can_be_had_again(
    moves, per_caller, in_all
):
    shares = Shares("streams", per_caller=per_caller, in_all=in_all)
    held = Counter()
    for is_more, caller in moves:
        if is_more:
            can = held[caller] < per_caller and held.total() < in_all
            assert (shares.explain_lack(caller) is None) is can
            if can:
                shares.add(caller)
                held[caller] += 1
        elif held[caller]:
            shares.remove(caller)
            held[caller] -= 1
    for caller in list(held.elements()):
        shares.remove(caller)
    assert not shares._counts


def test_a_lack_says_whose_share_is_used_up():
    shares = Shares("streams", per_caller=1, in_all=2)
    shares.add("a")
    assert shares.explain_lack("a") == (
        "Too many streams: one caller can have 1 at a time. Try again when one has ended."
    )
    shares.add("b")
    assert "all callers together can have 2 at a time" in shares.explain_lack("c")
