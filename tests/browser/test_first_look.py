"""What a visitor of Binder sees, who has no assistant: cells that call the tools as one would."""

import pytest
from lab_page import SOON
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
PLOT, YEAR = 6, 7
"""The places of the cells that call tools."""


def test_after_run_all_a_visitor_sees_what_an_assistant_gets(open_notebook):
    notebook = open_notebook("first_look.ipynb", app="notebook")
    notebook.run_all()
    expect(notebook.output_of(YEAR)).to_contain_text("%", timeout=SOON)
    expect(notebook.output_of(PLOT).locator("img")).to_be_visible()
    notebook.photograph("first_look", notebook.output_of(PLOT))
