from pathlib import Path

import pytest

from mcp_notebook.bridge.headless.cell_progress import CellProgress, show_on_stderr

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
