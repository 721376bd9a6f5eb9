"""The side panel, as its user sees it in JupyterLab and Notebook 7, while assistants call."""

import pytest
from lab_page import SOON
from playwright.sync_api import expect
from test_panel import TOOLS, busy

pytestmark = pytest.mark.browser


class SidePanel:
    """The panel of a page."""

    def __init__(self, notebook):
        self.notebook = notebook
        self.place = notebook.page.locator("#mcp-notebook-panel")

    def open(self):
        """Show it, as its command does."""
        self.notebook.execute("mcp-notebook:open-panel")
        expect(self.place).to_be_visible(timeout=SOON)
        return self

    def section(self, title):
        return self.place.get_by_role("region", name=title)

    def expect_text(self, text, *, section=None):
        place = self.place if section is None else self.section(section)
        expect(place).to_contain_text(text, timeout=SOON)


def open_panel(notebook, find_assistant):
    """Return the panel beside a notebook with tools, and an assistant that can call them."""
    panel = SidePanel(notebook).open()
    notebook.run_all()
    notebook.run(TOOLS)
    return panel, find_assistant(notebook.run("%mcp serve"))


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_calls_are_seen_and_stopped_while_a_cell_runs(server, open_notebook, find_assistant, app):
    notebook = open_notebook("quickstart.ipynb", app=app)
    panel, assistant = open_panel(notebook, find_assistant)
    panel.expect_text("live")
    assistant.call("plot_rain", year=2015)
    assistant.call("rain_in", city="Atlantis")
    panel.expect_text("no data for Atlantis", section="Last calls")
    with busy(server, notebook):
        running = assistant.start_call("forecast_sales", seconds=60)
        waiting = assistant.start_call("clean_orders", seconds=60)
        panel.expect_text("waiting for the end of the cell", section="Running calls")
        notebook.photograph(f"side_panel_{app}", panel.place)
        panel.place.get_by_role("button", name="Stop forecast_sales").click()
        assert "The user stopped the call" in running.result(60)
        panel.place.get_by_role("button", name="Stop clean_orders").click()
        assert "The user stopped the call" in waiting.result(60)
        panel.expect_text("None is running.", section="Running calls")
