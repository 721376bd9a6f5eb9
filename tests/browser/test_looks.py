"""What `looks.py` finds, so that finding nothing says something."""

import pytest
from looks import find_flaws

pytestmark = pytest.mark.browser
FLAWS = {
    "<p style='color:#bbb;background:#fff'>grey</p>": "contrast",
    "<p style='opacity:.4;color:#000;background:#fff'>faint</p>": "contrast",
    "<button></button>": "Buttons must have discernible text",
    "<img src='data:,'>": "alternative text",
    "<a href='https://example.org'></a>": "Links must have discernible text",
    "<input>": "Form elements must have labels",
    "<div style='width:3em;overflow:hidden;white-space:nowrap'>far too long</div>": "cut off",
    "<div style='width:200em'>wide</div>": "cut off",
}


@pytest.mark.parametrize("html", FLAWS)
def test_a_flaw_is_found(context, html):
    page = context.new_page()
    page.set_content(f"<html lang=en><title>.</title><main style='width:40em'>{html}</main>")
    (flaw,) = find_flaws(page.locator("main"))
    assert FLAWS[html] in flaw
