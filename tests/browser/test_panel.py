"""`%mcp panel` and `%mcp status` in the browser: the side panel, or a snapshot of every width."""

import json

import pytest
from lab_page import SOON, NotebookPage
from looks import find_violations
from playwright.sync_api import expect
from side_panel import SidePanel

from mcp_notebook.kernel.notebook.panel.snapshot import build_snapshot
from mcp_notebook.wire import messages

pytestmark = pytest.mark.browser
WIDTHS = (400, 800, 1100, 1600)
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
NOW = 1_790_000_000.0
LONG = "plot_rain(city='Seattle', note='" + "x" * 290 + "')"
STATE = messages.NotebookState(
    name="weather",
    addresses=["`http://127.0.0.1:8791/mcp`", "`/mcp` on this Jupyter server"],
    clients=[messages.SeenClient(name="claude-code 2.1.0", since=NOW)],
    tools=[
        messages.SeenTool(name=f"tool_{number}", description="What it does. " * 9, calls=number % 9)
        for number in range(60)
    ],
    open_calls=[
        messages.OpenCall(
            number=17, tool="plot_rain", client="claude-code 2.1.0", call=LONG, came=NOW, began=NOW
        )
    ],
    ended_calls=[
        messages.EndedCall(
            number=number,
            tool="plot_rain",
            client="claude-code 2.1.0",
            call=LONG,
            came=NOW,
            state="failed",
            seconds=0.4,
            is_error=True,
            result="ValueError: " + "there is no such city, " * 9,
        )
        for number in range(9, 0, -1)
    ],
    number_of_calls=500,
)


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_the_line_opens_the_side_panel_and_shows_nothing(open_notebook, app):
    notebook = open_notebook("quickstart.ipynb", app=app)
    notebook.run_all()
    panel = SidePanel(notebook)
    expect(panel.place).to_be_hidden()
    shown = notebook.run("%mcp panel")
    expect(panel.place).to_be_visible(timeout=SOON)
    expect(shown.locator(".jp-OutputArea-child")).to_have_count(0)


def test_calls_and_questions_never_mark_the_notebook_as_changed(open_notebook, find_assistant):
    notebook = open_notebook("quickstart.ipynb")
    notebook.run_all()
    notebook.run("%%mcp_tool --confirm\ndef forget(customer: str):\n    'Forget a customer.'")
    assistant = find_assistant(notebook.run("%mcp serve"))
    panel = SidePanel(notebook).open()
    notebook.save()
    assert not notebook.is_dirty()
    assistant.call("top_customers", region="EU")
    call = assistant.start_call("forget", customer="Ada")
    panel.answer("Deny")
    assert "did not allow it" in call.result(60)
    panel.expect_text("top_customers", section="Last calls")
    assert not notebook.is_dirty()


def test_a_tool_whose_cell_was_deleted_is_removed_in_the_side_panel(open_notebook):
    notebook = open_notebook("quickstart.ipynb")
    notebook.run_all()
    panel = SidePanel(notebook).open()
    declared = notebook.add_cell("%%mcp_tool\ndef forget(customer: str):\n    'Forget a customer.'")
    notebook.run_cell(declared)
    panel.expect_text("forget", section="Tools")
    notebook.execute("notebook:delete-cell")
    notebook.run("1")
    said = panel.section("Tools").get_by_text("Its cell was deleted.")
    expect(said).to_be_visible(timeout=SOON)
    notebook.photograph("deleted_cell", panel.place)
    assert said.evaluate("element => element.scrollWidth <= element.clientWidth")  # not cut off
    panel.expect_text("The cell of forget was deleted. Clients still", section="Connection")
    panel.button("Remove forget").click()
    removed = "Removed forget. Its function is still defined."
    panel.expect_text(removed)
    expect(panel.section("Tools")).not_to_contain_text("forget")
    notebook.restart()
    expect(panel.place).not_to_contain_text(removed)


@pytest.fixture
def stored(server, context):
    """A stored notebook with a snapshot and a card, which is not trusted."""
    cell = {"cell_type": "code", "source": "%mcp panel", "id": "panel", "metadata": {}}
    data = build_snapshot(STATE, {}, NOW)
    cell |= {
        "outputs": [{"output_type": "display_data", "data": data, "metadata": {}}],
        "execution_count": 1,
    }
    notebook = {"cells": [cell], "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}
    (server.folder / "stored.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    page = NotebookPage(context.new_page())
    page.open(server, "stored.ipynb", app="lab")
    page.execute("application:toggle-left-area")
    yield page
    page.shut_down()


def test_a_snapshot_is_never_wider_than_its_output_also_where_it_is_not_trusted(stored):
    shown = stored.output_of(0)
    expect(shown).to_contain_text("%mcp stop 17")
    expect(shown).to_contain_text("and 492 calls more")
    assert shown.locator("script, [onclick]").count() == 0
    for theme in ("light", "dark"):
        stored.use_theme(theme)
        for width in WIDTHS:
            stored.page.set_viewport_size({"width": width, "height": 900})
            stored.photograph(f"snapshot_{width}_{theme}", shown)
            assert (
                shown.evaluate(
                    """output => {
                    const right = output.getBoundingClientRect().right + 1;
                    const cells = [...output.querySelectorAll("td, th")];
                    return cells.filter(cell => cell.getBoundingClientRect().right > right).length;
                }"""
                )
                == 0
            )
        assert find_violations(shown) == []
