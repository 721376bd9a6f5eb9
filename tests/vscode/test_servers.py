"""VS Code's own client: it finds the server of the extension, without a settings file."""

import json
import re

import pytest
from playwright.sync_api import expect
from vs_code import SOON

from notebooks import DROP, LOAD, RAIN

pytestmark = pytest.mark.vscode

ENTRY = {"servers": {"own": {"type": "stdio", "command": "python", "args": ["-m", "mcp_notebook"]}}}


def test_vs_code_calls_the_tools_of_the_open_notebook_without_a_settings_file(open_window):
    window = open_window(RAIN, DROP)
    panel = window.panel
    assert window.list_servers() == ["notebook"]
    window.start_server("notebook")
    panel.expect_text("code-server", section="Clients")
    window.wait_for_tool("rain")
    # VS Code asks by itself before a tool that may change something.
    window.call("rain", day=3)
    window.page.get_by_role("dialog").get_by_role("button", name="Yes").click()
    assert "3 mm" in str(window.read_result())
    panel.expect_text("rain(day=3)", section="Last calls")
    panel.place.get_by_role("switch", name="Clients may call rain").click()
    window.wait_for_tool("rain", is_there=False)


def test_copilots_agent_calls_the_tool(open_window):
    window = open_window(RAIN)
    panel = window.panel
    window.start_server("notebook")
    window.wait_for_tool("rain")
    window.start_agent()
    chat = window.ask_agent("How much rain?")
    chat.get_by_text("Allow in this Session").click(timeout=SOON)
    expect(chat).to_contain_text(re.compile("The tool says: .*3 mm"), timeout=SOON)
    panel.expect_text("rain(day=3)", section="Last calls")


def test_a_window_with_settings_of_its_own_gets_no_second_server(open_window):
    window = open_window()
    settings = window.folder / ".vscode" / "mcp.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps(ENTRY), encoding="utf-8")
    window.open("weather.ipynb", LOAD, RAIN)
    window.run_all()
    expect(window.status_bar).to_contain_text("1 tool", timeout=SOON)
    assert window.list_servers() == ["own"]
