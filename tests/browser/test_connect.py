"""The side panel's Connect button: for a browser on the server's machine, and for one elsewhere."""

import json

import pytest
from lab_page import SOON, THEMES
from lab_server import TOKEN
from looks import find_violations
from mcp_types import Implementation
from playwright.sync_api import expect
from side_panel import SidePanel

pytestmark = pytest.mark.browser
BUTTON = "Connect an assistant"


@pytest.fixture
def cursor(server):
    """Cursor's settings in the server's home folder."""
    file = server.home / ".cursor" / "mcp.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"mcpServers": {}}', encoding="utf-8")
    return file


def test_an_assistant_on_this_machine_is_set_up_by_one_click(open_notebook, cursor):
    notebook = open_notebook("quickstart.ipynb")
    panel = SidePanel(notebook).open()
    button = panel.button(BUTTON)
    expect(button).to_contain_class("jp-mcp-lit")
    button.focus()
    button.press("Enter")
    panel.expect_text("Not found: Claude Code, ")
    for theme in THEMES:
        notebook.use_theme(theme)
        notebook.photograph(f"connect_{theme}", panel.place)
        assert find_violations(panel.place) == []
    panel.button("Lines for another assistant").click()
    panel.expect_text("Paste this into its settings for MCP servers.")
    panel.button("Lines for another assistant").click()
    panel.button("Lines for Cursor").click()
    panel.expect_text('"mcpServers"')
    panel.button("Set up Cursor").click()
    panel.expect_text("Connected Cursor: the server 'notebook' is in")
    panel.expect_text("Cursor is set up.")
    entry = json.loads(cursor.read_text(encoding="utf-8"))["mcpServers"]["notebook"]
    assert entry["args"][-1] == "stdio"


def test_an_assistant_that_is_set_up_is_said_to_be_seen_once_it_was(
    server, open_notebook, find_assistant
):
    (server.home / ".claude.json").write_text("{}", encoding="utf-8")
    notebook = open_notebook("quickstart.ipynb")
    panel = SidePanel(notebook).open()
    notebook.run_all()
    panel.button(BUTTON).click()
    panel.button("Set up Claude Code").click()
    panel.expect_text("Claude Code is set up; no notebook has seen it yet.")
    assistant = find_assistant(notebook.run("%mcp serve"))
    assistant.program = Implementation(name="claude-code", version="2.1.330")
    assistant.stay()
    panel.expect_text("Claude Code is set up; last seen ")
    notebook.photograph("connect_seen", panel.place)


def test_a_browser_elsewhere_gets_the_lines_to_run_there(open_notebook, context, cursor):
    context.set_extra_http_headers({"X-Forwarded-For": "192.0.2.7"})
    notebook = open_notebook("quickstart.ipynb")
    panel = SidePanel(notebook).open()
    panel.button(BUTTON).click()
    panel.button("Copy the settings with the token").click()
    panel.expect_text("The settings were copied.")
    settings = json.loads(notebook.page.evaluate("() => navigator.clipboard.readText()"))
    server = settings["mcpServers"]["notebook"]
    assert server["url"].endswith("/mcp-notebook")
    assert server["headers"] == {"Authorization": f"Bearer {TOKEN}"}
    expect(panel.place).not_to_contain_text(TOKEN)
    panel.place.get_by_label("An assistant that only starts commands").select_option("Codex CLI")
    panel.expect_text("mcp-notebook install codex --url http://127.0.0.1:")
    notebook.photograph("connect_elsewhere", panel.place)
    assert find_violations(panel.place) == []
    panel.button("Copy the line").click()
    panel.expect_text("The line was copied.")
    copied = notebook.page.evaluate("() => navigator.clipboard.readText()")
    assert copied.endswith("/mcp-notebook --token-file notebook.token")
    expect(panel.button("Set up Cursor")).to_have_count(0)
    assert "notebook" not in cursor.read_text(encoding="utf-8")


def test_the_button_is_lit_while_no_assistant_is_connected(server, open_notebook, find_assistant):
    notebook = open_notebook("quickstart.ipynb")
    panel = SidePanel(notebook).open()
    notebook.run_all()
    expect(panel.button(BUTTON)).to_contain_class("jp-mcp-lit")
    find_assistant(notebook.run("%mcp serve")).stay()
    expect(panel.button(BUTTON)).not_to_contain_class("jp-mcp-lit", timeout=SOON)
