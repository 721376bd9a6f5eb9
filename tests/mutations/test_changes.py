"""The wrong changes that ``run.py`` makes are still possible: the code has not moved on."""

import ast
from pathlib import Path

import pytest
from changes import CHANGES

ROOT = Path(__file__).parents[2]


def test_there_are_more_than_sixty():
    assert len(CHANGES) > 60


@pytest.mark.parametrize(
    "change", CHANGES, ids=lambda change: f"{change.file} {change.before[:30]}"
)
def test_a_change_can_be_made_in_one_place_and_its_tests_exist(change):
    source = (ROOT / "mcp_notebook" / change.file).read_text(encoding="utf-8")
    assert source.count(change.before) == 1
    ast.parse(source.replace(change.before, change.after))
    for test in change.tests.split():
        assert (ROOT / "tests" / test).is_file()
