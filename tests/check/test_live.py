"""``%mcp check``: the checks of a live notebook, which leave no trace in it."""

import pytest
from live import live_kernel
from planted_faults import ADD, FAULTS

STATE = """
%mcp log
names = None
names = sorted(name for name in globals() if not name.startswith("_"))
print(names, sales.to_csv(), calls)
"""


@pytest.fixture(scope="module")
def notebook(module_home):
    with live_kernel(module_home, notebook=str(module_home / "shop.ipynb")) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        for fault in ("changes a frame", "assigns to a name"):
            for cell in FAULTS[fault][2:]:
                kernel.ok(cell.strip())
        kernel.ok(ADD.strip())
        yield kernel


def test_the_cell_shows_what_is_found_in_the_live_tools(notebook):
    shown = notebook.ok("%mcp check").stdout
    assert "drop_gaps, cell 3, line 2: It is declared read-only, but it changes `sales` in" in shown
    assert "count_calls, cell 5, line 2: It is declared read-only, but it assigns to" in shown


def test_nothing_of_the_checks_stays_in_the_kernel(notebook):
    before = notebook.ok(STATE).stdout
    notebook.ok("%mcp check")
    after = notebook.ok(STATE).stdout
    assert after == before
    assert before.startswith("No calls yet")
    assert "1,,2.0" in before
