"""What Tab offers in JupyterLab on the lines of our magics."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
TOOL = """%%mcp_tool
from typing import Literal
def form(when: str, kind: Literal["rain", "snow"] = "rain"):
    'F.'
"""


def test_tab_offers_parameters_first_and_then_their_values(open_notebook):
    notebook = open_notebook("quickstart.ipynb")
    notebook.run("%load_ext mcp_notebook")
    notebook.run(TOOL)
    index = notebook.add_cell("")
    notebook.cells.nth(index).locator(".cm-content").click()
    offered = notebook.page.locator(".jp-Completer-item .jp-Completer-match")
    for typed, first in [("%mcp call form ", ["when=", "kind="]), ("kind=", ["kind=rain"])]:
        notebook.page.keyboard.type(typed)
        notebook.page.keyboard.press("Tab")
        for position, text in enumerate(first):
            expect(offered.nth(position)).to_have_text(text)
        notebook.photograph("completion", offered.first)
        notebook.page.keyboard.press("Escape")
