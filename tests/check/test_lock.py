"""``mcp-notebook check --lock``, and what later checks say of a notebook that has a lock."""

import json
import shutil
import subprocess
import sys

import pytest
from documents import ROOT
from live import kernel_env
from planted_faults import ADD, run_check, write_notebook

from mcp_notebook.check.drift import describe_answer
from mcp_notebook.lock.tool_changes import compare_entries

SALES = '''
%%mcp_tool --read-only --example year=2015
def list_sales(year: int = 2015) -> dict[str, object]:
    """The sales of a year.

    Args:
        year: The year.
    """
    return {"year": year, "sales": [{"day": "Monday", "sum": 3.5}, {"day": "Friday", "sum": None}]}
'''
PRETENDED = ROOT / "tests" / "pretended_system"


@pytest.fixture
def notebook(home):
    """A notebook with a lock."""
    path = write_notebook(home, ADD.replace("--read-only", "--read-only --example a=1"), SALES)
    done = run_check(home, path, "--lock")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Locked in " in done.stderr
    return path


@pytest.fixture
def lock(notebook):
    return notebook.with_suffix(".tools.lock")


def change(path, *pairs):
    text = path.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_the_same_notebook_gives_the_same_lock_without_machine_or_values(home, notebook, lock):
    text = lock.read_text(encoding="utf-8")
    content = json.loads(text)
    assert content["entries"]["list_sales"]["answers"]['{"year": 2015}'] == {
        "block text": "text",
        "value .year": "number",
        "value .sales[].day": "text",
        "value .sales[].sum": "number",
    }
    assert str(home) not in text
    assert "Monday" not in text
    assert b"\r" not in lock.read_bytes()
    lock.write_text(text.replace(content["locked"], "2020-01-01"), encoding="utf-8")
    before = lock.read_bytes()
    run_check(home, notebook, "--lock")
    assert lock.read_bytes() == before  # its day, too: nothing else has changed


@pytest.mark.slow
def test_breaking_changes_and_those_to_look_at_end_with_1(home, notebook):
    assert "Unchanged since it was locked on " in run_check(home, notebook).stdout
    change(
        notebook,
        ("a=1", "a=1,b=1"),
        ("b: int = 2", "b: int, c: int = 4"),
        (r"\"sum\": 3.5", r"\"euros\": 3.5"),
    )
    done = run_check(home, notebook)
    assert done.returncode == 1
    lines = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    assert ["add", "`b` became required", "breaking"] in lines
    assert ["add", "`c` was added and is optional", "compatible"] in lines
    assert ["list_sales", "the answer has the new value .sales[].euros", "compatible"] in lines
    report = json.loads(run_check(home, notebook, "--json").stdout)
    assert {(each["name"], each["level"]) for each in report["changes"]} >= {("add", "breaking")}
    assert run_check(home, notebook, "--lock").returncode == 1  # `c` has no description
    assert "Unchanged" in run_check(home, notebook).stdout


def test_compatible_changes_end_with_0(home, notebook):
    change(notebook, ("year: int = 2015", "year: int | None = 2015"))
    done = run_check(home, notebook)
    assert done.returncode == 0
    assert "list_sales\t`year` also allows null\tcompatible" in done.stdout


@pytest.mark.slow
def test_a_lock_that_cannot_be_read_ends_with_1_until_it_is_written_again(home, notebook, lock):
    lock.write_text("<<<<<<< HEAD\n", encoding="utf-8")
    done = run_check(home, notebook)
    assert done.returncode == 1
    assert "The lock tools.tools.lock cannot be read (JSON is malformed" in done.stdout
    assert "check tools.ipynb --lock` writes one" in done.stdout
    (problem,) = json.loads(run_check(home, notebook, "--json").stdout)["changes"]
    assert (problem["name"], problem["level"]) == ("(lock)", "breaking")
    assert run_check(home, notebook, "--lock").returncode == 0
    assert "Unchanged" in run_check(home, notebook).stdout
    lock.write_text(lock.read_text().replace('"format": 1', '"format": 2'))
    assert "Invalid enum value 2 - at `$.format`" in run_check(home, notebook).stdout
    assert run_check(home, notebook, "--lock").returncode == 0
    lock.write_text(lock.read_text().replace('"annotations": {', '"annotations": 5, "x": {'))
    assert "its entry in the lock is damaged\tbreaking" in run_check(home, notebook).stdout


@pytest.mark.slow
def test_nothing_is_locked_while_a_cell_fails(home, notebook, lock):
    before = lock.read_bytes()
    change(notebook, ("def add", "1 / 0\\ndef add"))
    done = run_check(home, notebook, "--lock")
    assert done.returncode == 2
    assert "Not locked, because a cell fails" in done.stderr
    assert lock.read_bytes() == before


@pytest.mark.slow
def test_windows_gives_the_same_lock(home, notebook, lock):
    before = lock.read_bytes()
    lock.unlink()
    pretended = {"PYTHONPATH": str(PRETENDED), "TESTS_PLATFORM": "win32"}
    words = [sys.executable, "-m", "mcp_notebook", "check", str(notebook), "--lock"]
    subprocess.run(words, env=kernel_env(home) | pretended, cwd=home, check=False, timeout=110)
    assert lock.read_bytes() == before


@pytest.mark.slow
def test_the_demo_notebook_is_as_it_was_locked(home):
    for name in ("good_tools.ipynb", "good_tools.tools.lock"):
        shutil.copy(ROOT / "notebooks" / name, home)
    assert "Unchanged" in run_check(home, home / "good_tools.ipynb").stdout


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("month int32, mm float64", "month Int64, mm double[pyarrow]", []),
        ("name object", "name str", []),
        ("at datetime64[ns], x int64", "at datetime64[us, UTC], x float32", []),
        ("a b str, c bool", "a b str", ["breaking: the answer lost the column c"]),
        ("a str", "a str, b str", ["compatible: the answer has the new column b"]),
        ("a str", "a int64", ["breaking: the column a is number (was text)"]),
    ],
)
def test_columns_are_compared_by_kinds_that_no_library_changes(before, after, wanted):
    assert (
        compare(*(f"DataFrame: 2 rows x 2 columns; {each}\n\n1" for each in (before, after)))
        == wanted
    )


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ('{"a": 1}', '{"a": 2.5}', []),
        ('{"a": 1}', '{"a": null}', []),
        ('{"days": [{"mm": 1}]}', '{"days": []}', []),
        ('{"2012-01-01": 1}', '{"2013-05-05": 2, "2014-01-01": 3}', []),
        ('{"a": {"b": 1}}', '{"a": {}}', []),
        ('{"a": 1, "ab": 2}', '{"a": null}', ["breaking: the answer lost the value .ab"]),
        ('{"a": 1, "b": 2}', '{"b": 2}', ["breaking: the answer lost the value .a"]),
        ('{"a": 1}', "none", ["breaking: the answer lost the value .a"]),
        ('{"a": 1}', '{"a": "1"}', ["breaking: the value .a is text (was number)"]),
    ],
)
def test_data_are_compared_by_structure_and_not_by_values(before, after, wanted):
    assert compare(before, after) == wanted


def compare(before, after):
    """Return the changes between two answers with these texts."""
    entries = [
        {"answers": {"{}": describe_answer({"content": [{"type": "text", "text": each}]})}}
        for each in (before, after)
    ]
    return [f"{each.level}: {each.text}" for each in compare_entries("t", *entries)]
