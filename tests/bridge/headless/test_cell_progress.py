import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_notebook.bridge.headless.cell_progress import CellProgress, SharedProgress, show_on_stderr

SALES = Path("sales.ipynb")


def _tell(show):
    for done, source in enumerate(["%%mcp_tool\n\ndef top():\n    pass", "x" * 100, ""]):
        show(CellProgress(notebook=SALES, done=done, total=2, source=source))


def test_without_a_terminal_each_cell_is_a_plain_line(capsys):
    with show_on_stderr() as show:
        _tell(show)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "sales.ipynb: cell 1 of 2: def top():",
        f"sales.ipynb: cell 2 of 2: {'x' * 59}…",
        "sales.ipynb: 2 cells have run",
    ]


def test_a_single_cell_is_not_counted_in_the_plural(capsys):
    with show_on_stderr() as show:
        show(CellProgress(notebook=SALES, done=1, total=1))
    assert capsys.readouterr().err == "sales.ipynb: 1 cell has run\n"


@pytest.mark.parametrize("source", ["code()", ""])
def test_a_cell_that_failed_is_told_before_what_follows(capsys, source):
    with show_on_stderr() as show:
        progress = CellProgress(
            notebook=SALES, done=1, total=2, source=source, failure="It failed."
        )
        show(progress)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "It failed."
    assert second.startswith("sales.ipynb: ")


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals")
def test_on_a_terminal_there_is_a_bar_that_goes_away_and_failures_stay():
    script = (
        "from pathlib import Path\n"
        "from mcp_notebook.bridge.headless.cell_progress import CellProgress, show_on_stderr\n"
        "with show_on_stderr() as show:\n"
        "    for done, failed in ((0, None), (1, 'Cell [1] failed.'), (2, None)):\n"
        "        show(CellProgress(notebook=Path('sales.ipynb'), done=done, total=2,\n"
        "                          source='[bold]x', failure=failed))\n"
    )
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"TERM": "xterm"},
            stdout=subprocess.PIPE,
            stderr=theirs,
            check=True,
        )
        shown = os.read(ours, 100_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.stdout == b""
    assert "sales.ipynb" in shown
    assert "2/2" in shown
    assert "Cell [1] failed." in shown
    assert "[bold]x" in shown


def test_notebooks_that_overlap_share_one_set_of_bars(capsys):
    shared = SharedProgress()
    with shared.show() as first:
        with shared.show() as second:
            assert first is second
        _tell(first)
    with shared.show() as again:
        _tell(again)
    assert capsys.readouterr().err.count("2 cells have run") == 2
