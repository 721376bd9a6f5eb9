"""Cards in JupyterLab, in both themes, with one tool and many; the status, and a form."""

import pytest
from looks import look_at
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
FEW = """%%mcp_tool --destructive --confirm --related archive
def remove_orders(before: str, regions: list[str], limit: int = 100) -> int:
    '''Remove old orders.

    They cannot be restored.

    Args:
        before: The day of the first order that stays, as in 2026-01-31; orders of that very day
            and all later ones are kept.
        limit: At most so many.
    '''
def count_orders():
    pass
"""
MANY = "from mcp_notebook import mcp_tool\n" + "\n".join(
    f"@mcp_tool(read_only=True)\ndef report_{n}(year: int):\n    'Return report {n} of a year.'"
    for n in range(7)
)


def test_cards_and_the_status_can_be_read_and_used(open_notebook):
    notebook = open_notebook("quickstart.ipynb")
    notebook.run_all()
    few, many = notebook.run(FEW), notebook.run(MANY)
    look_at("card_few", notebook, few)

    fold = many.locator("summary", has_text="report_3")
    expect(many.get_by_text("required").nth(3)).to_be_hidden()
    fold.click()
    expect(many.get_by_text("required").nth(3)).to_be_visible()
    look_at("card_many", notebook, many)

    status = notebook.run("%mcp")
    look_at("status", notebook, status)
    status.get_by_role("button", name="Copy").first.click()
    expect(status.get_by_role("button", name="Copied")).to_be_visible()
    copied = notebook.page.evaluate("() => navigator.clipboard.readText()")
    assert copied == notebook.page.evaluate("() => location.origin + '/mcp-notebook'")
