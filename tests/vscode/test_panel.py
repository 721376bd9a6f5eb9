"""The side panel in VS Code: a kernel comes and goes, and calls are seen, stopped and recorded."""

import json
import re

import pytest
from live import TIMEOUT
from playwright.sync_api import expect
from vs_code import SOON

from notebooks import DROP, LOAD, PLOT, RAIN, UNLOAD, WAIT

pytestmark = pytest.mark.vscode

THEMES = ("Dark 2026", "Dark High Contrast", "Light High Contrast", "Light 2026")


def test_the_panel_shows_a_notebook_from_its_first_cell_to_the_end_of_its_kernel(
    open_window, server
):
    window = open_window()
    window.open("weather.ipynb", "1", RAIN)
    panel = window.panel
    panel.expect_text("This notebook offers no tools yet. If its kernel is on a remote")
    panel.button("Load mcp_notebook").click()
    window.run_all()
    panel.expect_text("rain", section="Tools")
    expect(window.status_bar).to_contain_text("1 tool", timeout=SOON)
    server.end_kernels()
    panel.expect_text("This notebook offers no tools yet")
    expect(window.status_bar).not_to_contain_text("1 tool", timeout=SOON)


def test_calls_are_seen_and_recorded_and_run_again(open_window, assistant):
    window = open_window(RAIN, PLOT)
    panel = window.panel
    assert assistant.call("rain", day=3) == "3 mm"
    assert "ZeroDivisionError" in assistant.call("rain", day=0)
    assistant.call("plot")
    panel.expect_text("ZeroDivisionError: division by zero", section="Last calls")
    picture = panel.section("Last calls").locator("img")
    expect(picture).to_have_attribute("src", re.compile("^data:image/png;base64,"), timeout=SOON)
    panel.section("Last calls").get_by_role("button", name="rain(day=3)").click()
    panel.button("Record").click()
    editor = window.page.locator(".notebookOverlay").last
    expect(editor).to_contain_text("%mcp call rain", timeout=SOON)
    panel.button("Run again").click()
    panel.expect_text("this notebook", section="Last calls")
    panel.section("Tools").get_by_role("button", name="rain", exact=True).click()
    expect(editor.locator(".monaco-list-row.focused")).to_contain_text("def rain", timeout=SOON)


def test_a_call_is_stopped_in_the_panel_and_in_the_status_bar(open_window, assistant):
    window = open_window(WAIT)
    panel = window.panel
    call = assistant.start_call("wait")
    panel.expect_text("wait()", section="Running calls")
    panel.button("Stop wait").click()
    assert call.result(TIMEOUT) == "The user stopped the call in VS Code."
    panel.expect_text("Stopped wait.")
    call = assistant.start_call("wait")
    expect(window.status_bar).to_contain_text(re.compile(r"wait \d+ s"), timeout=SOON)
    window.status_bar.get_by_role("button", name="Stop wait").click()
    assert call.result(TIMEOUT) == "The user stopped the call in VS Code."


def test_a_restart_is_told_and_the_tools_come_back_unless_they_are_unloaded(open_window, assistant):
    window = open_window(RAIN, UNLOAD)
    panel = window.panel
    assert assistant.call("rain", day=3) == "3 mm"
    panel.expect_text("rain(day=3)", section="Last calls")
    window.run_command("Tests: Restart Kernel")
    panel.expect_text("This notebook offers no tools yet")
    panel.button("Load mcp_notebook").click()
    panel.expect_text("1 tool is gone until its cell runs")
    panel.expect_text("rain(day=3)", section="Calls before the restart at .*")
    panel.button("Run their cells and all above").click()
    panel.expect_text("rain", section="Tools")
    (window.folder / "unload").touch()
    window.run_all()
    panel.expect_text("This notebook offers no tools yet")
    panel.button("Load mcp_notebook").click()
    panel.expect_text("None yet.", section="Tools")
    expect(panel.place).not_to_contain_text("gone until")


def test_the_panel_connects_clients_of_this_machine(open_window, server):
    (server.home / ".cursor").mkdir(exist_ok=True)
    window = open_window()
    window.open("weather.ipynb", LOAD)
    window.run_all()
    panel = window.panel
    panel.expect_text("None yet.", section="Tools")
    panel.button("Connect an assistant").click()
    panel.button("Set up Cursor").click()
    panel.expect_text("Connected Cursor: the server 'notebook' is in")
    entries = json.loads((server.home / ".cursor" / "mcp.json").read_text("utf-8"))["mcpServers"]
    assert entries["notebook"]["args"] == ["-P", "-m", "mcp_notebook", "stdio"]


def test_the_panel_can_be_read_in_each_theme(open_window, assistant):
    window = open_window(RAIN, DROP)
    panel = window.panel
    assistant.call("rain", day=0)
    panel.expect_text("ZeroDivisionError", section="Last calls")
    call = assistant.start_call("drop", table="rain")
    panel.expect_text('table = "rain"', section="Questions")
    for theme in THEMES:
        window.use_theme(theme)
        assert panel.find_violations() == [], theme
    panel.answer("Deny")
    call.result(TIMEOUT)
