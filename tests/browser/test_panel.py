"""`%mcp panel` and `%mcp status` in the browser: the side panel, or the status."""

import pytest
from lab_page import SOON
from playwright.sync_api import expect
from side_panel import SidePanel

pytestmark = pytest.mark.browser


def test_the_line_opens_the_side_panel_and_shows_nothing(open_notebook):
    notebook = open_notebook("quickstart.ipynb", app="notebook")
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
