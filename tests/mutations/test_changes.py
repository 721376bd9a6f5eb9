"""The wrong changes that ``run.py`` makes are still possible: the code has not moved on."""

import ast
from pathlib import Path

from changes import CHANGES

ROOT = Path(__file__).parents[2]


def test_there_are_more_than_sixty():
    assert len(CHANGES) > 60


def test_each_change_can_be_made_in_one_place_and_its_tests_exist():
    problems = {f"{change.file}: {change.before}": _find_problem(change) for change in CHANGES}
    assert {change: problem for change, problem in problems.items() if problem} == {}


def _find_problem(change):
    """Return why a change cannot be made; None if it can be."""
    source = (ROOT / "mcp_notebook" / change.file).read_text(encoding="utf-8")
    if source.count(change.before) != 1:
        return f"this is there {source.count(change.before)} times"
    try:
        ast.parse(source.replace(change.before, change.after))
    except SyntaxError as error:
        return str(error)
    missing = [test for test in change.tests.split() if not (ROOT / "tests" / test).is_file()]
    return f"there is no {missing}" if missing else None
