"""The side panel in VS Code: a kernel comes and goes, and calls are seen and stopped."""

import pytest

pytestmark = pytest.mark.vscode

LOAD = "%load_ext mcp_notebook"
RAIN = '''%%mcp_tool
def rain(day: int) -> str:
    """Return the rain of a day."""
    return f"{day} mm" if day > 0 else 1 / 0
'''


def test_first(open_window):
    window = open_window()
    window.open("weather.ipynb", LOAD, RAIN)
    window.run_all()
    window.page.wait_for_timeout(15000)
    window.page.screenshot(path="/tmp/v41-a.png")
    panel = window.panel
    window.page.wait_for_timeout(3000)
    window.page.screenshot(path="/tmp/v41-b.png")
    panel.expect_text("rain", section="Tools")
