"""The live panel, as its user sees it in JupyterLab and Notebook 7, while assistants call."""

import json

import pytest
from lab_page import SOON, NotebookPage
from looks import look_at
from playwright.sync_api import expect
from side_panel import TOOLS, busy

from mcp_notebook.kernel.notebook.panel.panel_state import OpenCall, PanelState
from mcp_notebook.kernel.notebook.panel.panel_view import build_panel

pytestmark = pytest.mark.browser


def find_stop(panel, tool):
    """Return the stop buttons of a tool's calls."""
    row = panel.get_by_role("row").filter(has_text=tool)
    return row.get_by_role("button", name="stop", exact=True)


def open_panel(notebook, find_assistant):
    """Return the panel of a notebook with tools, and an assistant that can call them."""
    notebook.run_all()
    notebook.run(TOOLS)
    assistant = find_assistant(notebook.run("%mcp serve"))
    panel = notebook.run("%mcp panel")
    expect(panel).to_contain_text("live")
    return panel, assistant


def test_the_panel_follows_calls_and_stops_them_also_while_a_cell_runs(
    server, open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = open_panel(notebook, find_assistant)
    assistant.call("plot_rain", year=2015)
    assistant.call("rain_in", city="Atlantis")
    expect(panel.locator("img")).to_have_count(1, timeout=SOON)
    expect(panel).to_contain_text("no data for Atlantis", timeout=SOON)
    expect(panel).to_contain_text("assistant 1.0")

    with busy(server, notebook):
        running = assistant.start_call("forecast_sales", seconds=60)
        waiting = assistant.start_call("clean_orders", seconds=60)
        expect(panel).to_contain_text("waiting for the end of the cell since", timeout=SOON)
        expect(find_stop(panel, "forecast_sales")).to_have_count(1, timeout=SOON)
        look_at("panel", notebook, panel)
        notebook.use_theme("light")
        find_stop(panel, "forecast_sales").click()
        assert "The user stopped the call" in running.result(60)
        expect(find_stop(panel, "forecast_sales")).to_have_count(0, timeout=SOON)
    # It has begun, and keeps the kernel busy itself.
    expect(panel).to_contain_text("the notebook's interrupt", timeout=SOON)
    find_stop(panel, "clean_orders").click()
    assert "The user stopped the call" in waiting.result(60)
    expect(panel.get_by_role("button")).to_have_count(0, timeout=SOON)

    notebook.wait_until_idle()
    notebook.run("%unload_ext mcp_notebook")
    expect(panel).to_contain_text("gone", timeout=SOON)
    notebook.photograph("panel_gone", panel)


def test_notebook_7_shows_the_panel_and_stops_a_call_while_a_cell_runs(
    server, open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb", app="notebook")
    panel, assistant = open_panel(notebook, find_assistant)
    with busy(server, notebook):
        running = assistant.start_call("forecast_sales", seconds=60)
        expect(find_stop(panel, "forecast_sales")).to_have_count(1, timeout=SOON)
        notebook.photograph("panel_notebook", panel)
        find_stop(panel, "forecast_sales").click()
        assert "The user stopped the call" in running.result(60)
        expect(panel.get_by_role("button")).to_have_count(0, timeout=SOON)


KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
STAMP = "2026-11-22 11:42:08, kernel 4711"
STATE = PanelState(
    notebook="weather",
    kernel="a1",
    open_calls=(OpenCall(number=17, tool="forecast", client="chat", doing="running"),),
)


def test_a_stored_panel_that_is_not_trusted_runs_nothing_and_says_what_stops_a_call(
    server, context
):
    output = {"output_type": "display_data", "data": build_panel(STATE, STAMP), "metadata": {}}
    source = {"cell_type": "code", "source": "%mcp panel", "outputs": [output], "id": "panel"}
    cell = source | {"execution_count": 1, "metadata": {}}
    notebook = {"cells": [cell], "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}
    (server.folder / "stored.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    page = NotebookPage(context.new_page())
    page.open(server, "stored.ipynb", app="lab")
    panel = page.output_of(0)
    expect(panel).to_contain_text("mcp-notebook call --stop weather:17")
    assert panel.locator("[onclick], [onmousedown]").count() == 0
    look_at("panel_untrusted", page, panel)
    page.shut_down()


def test_in_a_page_of_no_jupyter_server_the_button_says_what_stops_the_call(context):
    page = context.new_page()
    page.set_content(f"<main>{build_panel(STATE, STAMP)['text/html']}</main>")
    page.get_by_role("button").click()
    expected = "run mcp-notebook call --stop weather:17 in a terminal"
    expect(page.get_by_role("button")).to_have_text(expected)
