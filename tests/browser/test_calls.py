"""What a notebook shows of the calls of a client."""

import pytest
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


def test_a_question_whether_a_call_may_run_is_answered_in_a_cell(open_notebook, find_assistant):
    notebook = open_notebook("quickstart.ipynb")
    notebook.run_all()
    assistant = find_assistant(notebook.run("%mcp serve"))
    below = notebook.run(CAREFUL)
    call = assistant.start_call("forget", customer="Ada")
    expect(below).to_contain_text("%mcp allow 1 session")
    look_at("question", notebook, below)
    notebook.run("%mcp allow 1")
    assert call.result(TIMEOUT) == "Ada is forgotten."
    expect(below).not_to_contain_text("%mcp allow 1")


SLOW = """\
%%mcp_tool
def count_up() -> int:
    "Count, slowly."
    import time
    for second in range(600):
        time.sleep(1)
    return second
"""


def test_the_panel_counts_calls_and_its_button_stops_one_while_the_kernel_is_busy(
    open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    notebook.run_all()
    assistant = find_assistant(notebook.run("%mcp serve"))
    notebook.run(SLOW)
    panel = notebook.run("%mcp panel")
    expect(panel).to_contain_text("not called yet")
    assistant.call("top_customers", region="EU")
    expect(panel).to_contain_text("1 call")
    expect(panel).to_contain_text("top_customers(region='EU')")
    call = assistant.start_call("count_up")
    stop = panel.get_by_role("button", name="stop")
    expect(stop).to_be_visible()
    look_at("panel_running", notebook, panel)
    stop.click()
    assert "The user stopped the call" in call.result(TIMEOUT)
    expect(panel).to_contain_text("1 error")
    expect(stop).to_have_count(0)
    look_at("panel_ended", notebook, panel)
