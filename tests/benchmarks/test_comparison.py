"""What the benchmarks make of what they have measured. Nothing is measured here."""

import pytest
from comparison import table
from comparison.figures import Measured, Run, median_ratio
from comparison.goals import GOALS, Goal
from comparison.growth import excess, linear
from comparison.requests import ADD, LIST_500, WrongAnswer
from comparison.rows import KEYS

OURS, THEIRS = "mcp-notebook http modern", "FastMCP http modern"


@pytest.fixture
def run():
    """A run in which the second round was disturbed."""
    row = Measured("`add`, 1 caller", "ms", {THEIRS: [2.0, 8.0, 4.0], OURS: [0.5, 2.0, 1.2]})
    return Run({"date": "2026-11-22"}, {"add@1": row})


def test_a_ratio_is_the_median_of_the_rounds_ratios_not_the_ratio_of_the_medians():
    assert median_ratio([1, 10, 3], [1, 2, 6]) == 1
    assert median_ratio([1, 10, 3], [1, 2, 6]) != 3 / 2


def test_a_run_is_read_as_it_was_written(run, tmp_path):
    run.write(tmp_path / "run.json")
    assert Run.read(tmp_path / "run.json") == run


def test_a_goal_for_times_is_an_upper_bound_and_one_for_calls_a_second_a_lower_one(run):
    times = run.rows["add@1"]
    assert Goal("add@1", "http", "modern", 0.3).holds(times)
    assert not Goal("add@1", "http", "modern", 0.2).holds(times)
    calls = Measured("`add`, 8 callers", "calls/s", {OURS: [600.0], THEIRS: [100.0]})
    assert Goal("add@8", "http", "modern", 5).holds(calls)
    assert not Goal("add@8", "http", "modern", 7).holds(calls)


def test_each_goal_is_one_of_a_row():
    assert {goal.row for goal in GOALS} <= set(KEYS)


def test_the_table_has_both_eras_in_a_cell_with_ratios_and_goals(run):
    legacy = {"FastMCP http legacy": [2.0] * 3, "mcp-notebook http legacy": [1.0] * 3}
    run.rows["add@1"].rounds |= legacy | {"gradio http legacy": [60.0] * 3}
    (shown,) = table.tables(run)
    assert shown.title == "Over HTTP"
    assert shown.head == ["", "mcp-notebook", "goal", "FastMCP", "gradio"]
    assert shown.rows == [
        [
            "`add`, 1 caller, ms",
            "1.2 (0.25x) / 1 (0.50x)",
            "≤ 0.3x ✓ / ≤ 0.4x ✗",
            "4 / 2",
            "- / 60 (30.00x)",
        ]
    ]


def test_an_answer_is_right_only_with_what_was_asked_for_in_its_length():
    ADD.check(b'{"result":{"content":[{"type":"text","text":"3"}]}}')
    with pytest.raises(WrongAnswer, match="add"):
        ADD.check(b'{"result":{"content":[{"type":"text","text":"4"}]}}')
    with pytest.raises(WrongAnswer):
        LIST_500.check(b'{"result":{"tools":[]}}')


def test_what_grows_linearly_goes_on_straight_and_what_grows_faster_lies_above():
    straight = [(1, 2.0), (10, 11.0), (100, 101.0), (1_000, 1_001.0)]
    assert linear(straight) == pytest.approx([y for _, y in straight])
    assert excess(straight) == pytest.approx(1)
    assert excess([(x, x**1.5) for x, _ in straight]) > 2
