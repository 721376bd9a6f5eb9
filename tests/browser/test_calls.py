"""What a notebook shows of the calls of a client."""

import pytest
from lab_page import SOON
from live import TIMEOUT
from looks import look_at
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
CAREFUL = """\
%%mcp_tool --confirm
def forget(customer: str) -> str:
    "Forget a customer."
    return f"{customer} is forgotten."
"""


def test_a_question_is_answered_in_a_cell_where_no_page_has_the_side_panel(
    open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    notebook.run_all()
    notebook.run(CAREFUL)
    expect(notebook.page.locator(".jp-mcp-line")).to_have_count(2, timeout=SOON)  # it is watched
    assistant = find_assistant(notebook.run("%mcp serve"))
    # As when the extension is disabled: the kernel has no watcher.
    below = notebook.run("get_ipython()._mcp_notebook.panel.set_watched(frozenset())")
    call = assistant.start_call("forget", customer="Ada")
    expect(below).to_contain_text("%mcp allow 1 session", timeout=SOON)
    look_at("question", notebook, below)
    notebook.run("%mcp allow 1")
    assert call.result(TIMEOUT) == "Ada is forgotten."
    expect(below).not_to_contain_text("%mcp allow 1")
