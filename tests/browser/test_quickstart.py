"""The quickstart, as a newcomer goes through it in JupyterLab and in Notebook 7."""

import pytest
from looks import look_at
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
CARD = 3
"""The number of the cell that shows it."""


def test_the_card_can_be_read_in_notebook_7(open_notebook):
    notebook = open_notebook("quickstart.ipynb", app="notebook")
    notebook.run_all()
    _look_at_card("notebook", notebook)


def _look_at_card(name, notebook):
    card = notebook.output_of(CARD)
    expect(card).to_contain_text("top_customers")
    expect(card).to_contain_text("read-only")
    look_at(f"quickstart_{name}", notebook, card)


def test_a_client_calls_what_the_notebook_has_after_changes_and_a_restart(
    open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    notebook.run_all()
    _look_at_card("lab", notebook)
    served = notebook.run("%mcp serve")
    notebook.photograph("serve", served)
    assistant = find_assistant(served)
    assert "Ada" in assistant.call("top_customers", region="EU")

    # The next call uses the data as it is then.
    notebook.run("orders.loc[orders.customer == 'Ada', 'customer'] = 'Dana'")
    assert "Dana" in assistant.call("top_customers", region="EU")

    # Each of them is in the log, and so is what went wrong.
    assert "allowed" in assistant.call("top_customers", n="many")
    log = notebook.run("%mcp log")
    expect(log.locator("tbody tr")).to_have_count(3)
    look_at("log", notebook, log)

    # A cell that is edited and run again changes its tool, and the card below it.
    notebook.set_source(CARD, "%%mcp_tool\ndef best_region() -> str:\n    return 'US'")
    card = notebook.run_cell(CARD)
    expect(card).to_contain_text("best_region")
    expect(card).to_contain_text("`top_customers` is gone")
    look_at("warning", notebook, card)
    assistant.wait_for_tools("best_region")

    notebook.restart()
    assistant.wait_for_tools()
    notebook.run_all()
    assistant.wait_for_tools("best_region")
    assert assistant.call("best_region") == "US"
