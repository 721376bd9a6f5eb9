"""How often the panel may show something new; the clock is the tests'."""

from itertools import pairwise

import pytest

from mcp_notebook.kernel.notebook.panel import update_rate
from mcp_notebook.kernel.notebook.panel.update_rate import UpdateRate


def run(seconds, *, every, rate=None, start=0.0):
    """Change something again and again; return when updates went out."""
    rate = rate or UpdateRate(start)
    updates, now = [], start
    while now < start + seconds:
        rate.note_change(now)
        if rate.wait(now) <= 0:
            rate.take_change()
            rate.note_update(now)
            updates.append(now)
        now += every
    return updates


def test_a_single_change_is_shown_at_once_and_a_short_call_as_one():
    rate = UpdateRate(0)
    assert not rate.has_change
    rate.note_change(100)
    assert rate.has_change
    assert rate.wait(100) == pytest.approx(update_rate.SETTLING)
    rate.note_change(100.04)  # the end of the call does not put it off
    assert rate.wait(100.06) <= 0
    rate.take_change()
    assert not rate.has_change


def test_a_burst_is_shown_a_few_times_a_second():
    updates = run(10, every=0.01)
    gaps = [later - earlier for earlier, later in pairwise(updates)]
    assert 25 <= len(updates) <= 34
    assert min(gaps) >= update_rate.SHORTEST - 1e-6


def test_a_kernel_that_is_called_for_a_day_sends_few_updates():
    updates = run(24 * 3600, every=0.5)
    assert len(updates) < update_rate.BURST + 3600 / update_rate.STEADY + 24 * 3600 / 30 + 50
    # The last hours: none closer than this.
    assert updates[-1] - updates[-2] >= update_rate.ASLEEP - 1


def test_a_cell_brings_the_panel_back_to_its_usual_pace():
    rate = UpdateRate(0)
    run(3 * 3600, every=1.0, rate=rate)
    now = 3 * 3600.0
    rate.note_use(now)
    updates = run(60, every=0.1, rate=rate, start=now)
    assert len(updates) >= 60 / update_rate.STEADY - 1


def test_after_a_quiet_time_a_burst_is_shown_again():
    rate = UpdateRate(0)
    run(1_000, every=0.1, rate=rate)
    updates = run(5, every=0.01, rate=rate, start=2_000.0)
    assert len(updates) >= 14
