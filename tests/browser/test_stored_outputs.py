"""Notebooks that are opened again: what their outputs say, trusted and not."""

import pytest
from looks import look_at
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
CARD = 3


def test_a_card_of_a_notebook_that_is_not_trusted_can_be_read(open_notebook):
    # A copy is not trusted: nobody has run its cells here.
    notebook = open_notebook("quickstart.ipynb")
    card = notebook.output_of(CARD)
    expect(card).to_contain_text("top_customers")
    assert card.locator(".jp-mod-trusted").count() == 0
    look_at("untrusted", notebook, card)
