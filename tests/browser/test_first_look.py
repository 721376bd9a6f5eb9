"""What a visitor of Binder sees, who has no assistant: the conversation that a cell plays back."""

import pytest
from lab_page import SOON, THEMES
from looks import find_flaws
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
EXCHANGE = 6
"""The place of the cell that plays it back."""


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_after_run_all_a_visitor_sees_a_conversation_whose_calls_ran_now(open_notebook, app):
    notebook = open_notebook("first_look.ipynb", app=app)
    notebook.run_all()
    shown = notebook.output_of(EXCHANGE)
    expect(shown).to_contain_text("The answer", timeout=SOON)
    assert shown.get_by_text("Called again now, with the same result").count() == 2
    expect(shown.locator("img")).to_be_visible()
    _look_at_boxes(f"first_look_{app}", notebook, shown)


def test_its_stored_outputs_can_be_read_before_anything_runs(open_notebook):
    notebook = open_notebook("first_look.ipynb")
    shown = notebook.output_of(EXCHANGE)
    expect(shown).to_contain_text("The answer", timeout=SOON)
    assert shown.locator(".jp-mod-trusted").count() == 0
    _look_at_boxes("first_look_untrusted", notebook, shown)


def _look_at_boxes(name, notebook, shown):
    """Look at what is ours: of a picture, JupyterLab says nothing to those who do not see it."""
    for theme in THEMES:
        notebook.use_theme(theme)
        notebook.photograph(f"{name}_{theme}", shown)
        boxes = shown.locator(".jp-RenderedHTMLCommon")
        assert boxes.count() == 10
        assert [flaw for box in boxes.all() for flaw in find_flaws(box)] == []
