"""Who has how many of a thing."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.caller_limits import Shares, limit_guests

MOVES = st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), max_size=60)


def user(name):
    return Caller(name=name, is_user=True)


@given(MOVES, st.integers(1, 4), st.integers(1, 8))
def test_nobody_gets_more_than_its_share_and_what_is_given_back_can_be_had_again(
    moves, per_caller, in_all
):
    shares = Shares("streams", per_caller=per_caller, in_all=in_all)
    held = Counter()
    for is_more, caller in moves:
        if is_more:
            can = held[caller] < per_caller and held.total() < in_all
            assert (shares.explain_lack(user(caller)) is None) is can
            if can:
                shares.add(user(caller))
                held[caller] += 1
        elif held[caller]:
            shares.remove(user(caller))
            held[caller] -= 1
    for caller in list(held.elements()):
        shares.remove(user(caller))
    assert not shares._counts


def test_a_lack_says_whose_share_is_used_up():
    shares = Shares("streams", per_caller=1, in_all=2)
    shares.add(user("a"))
    assert shares.explain_lack(user("a")) == (
        "Too many streams: one caller can have 1 at a time. Try again when one has ended."
    )
    shares.add(user("b"))
    assert "all callers together can have 2 at a time" in shares.explain_lack(user("c"))


@given(MOVES, st.integers(1, 12), st.integers(1, 12))
def test_guests_leave_a_quarter_to_the_user_whatever_they_do(moves, per_caller, in_all):
    shares = Shares("streams", per_caller=per_caller, in_all=in_all)
    held = Counter()
    for is_more, name in moves:
        guest = Caller(name=name, identity=f"token:{name}")
        if is_more and shares.explain_lack(guest) is None:
            shares.add(guest)
            held[name] += 1
        elif not is_more and held[name]:
            shares.remove(guest)
            held[name] -= 1
        kept = in_all - held.total()
        assert kept >= in_all // 4
        for number in range(kept):
            assert shares.explain_lack(user(f"{number}")) is None
            shares.add(user(f"{number}"))
        assert shares.explain_lack(user("one more")) is not None
        for number in range(kept):
            shares.remove(user(f"{number}"))
    assert all(1 <= limit_guests(places) <= places for places in range(1, 100))


def test_a_guest_is_told_that_the_guests_have_what_they_may_have():
    shares = Shares("streams", per_caller=4, in_all=4)
    for name in "abc":
        shares.add(Caller(name=name))
    assert shares.explain_lack(Caller(name="d")) == (
        "Too many streams: all who have tokens of their own together can have 3 at a time. "
        "Try again when one has ended."
    )
