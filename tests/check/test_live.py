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


def read_updates(kernel, code):
    """Run a cell, and return the texts of the cards that it replaces."""
    request = kernel.start(code)
    texts = []
    while True:
        message = kernel.client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "update_display_data":
            texts.append(message["content"]["data"]["text/plain"])
        if message["content"].get("execution_state") == "idle":
            kernel.client.get_shell_msg(timeout=60)
            return texts


@pytest.mark.slow
def test_a_card_has_a_mark_from_a_check_until_its_cell_runs_again(module_home):
    setup, faulty = FAULTS["assigns to a name"][2:]
    with live_kernel(module_home, notebook=str(module_home / "marks.ipynb")) as kernel:
        for cell in ("%load_ext mcp_notebook", setup, faulty, ADD):
            kernel.ok(cell.strip())
        [marked] = read_updates(kernel, "%mcp check")
        assert marked.splitlines()[-1].strip() == "%mcp check: changes-state, writes"
        assert read_updates(kernel, "%mcp check") == []
        sound = faulty.replace("global calls\n    calls += 1", "calls + 1").strip()
        [card] = kernel.ok(sound).displays
        assert "%mcp check" not in card["text/plain"]
        assert read_updates(kernel, "%mcp check") == []
        kernel.ok("del count_calls, add")
        assert kernel.ok("%mcp check").stdout == "There are no tools to call.\nNo findings.\n"
