"""Buttons and scripts of outputs on pages that are not Jupyter's: exports, VS Code."""

import json

import pytest
from lab_server import TOKEN
from looks import look_at
from playwright.sync_api import expect

from mcp_notebook.kernel.notebook.output_html import COPY_BUTTON
from mcp_notebook.kernel.notebook.public_address import build_address_card, find_public_address

pytestmark = pytest.mark.browser
BINDER = {"BINDER_LAUNCH_HOST": "https://mybinder.org/"}
HUB = {"JUPYTERHUB_SERVICE_PREFIX": "/user/ada/", "JPY_MCP_PATH": "/user/ada/mcp-notebook"}


@pytest.fixture
def page(context):
    """A page without Jupyter Server."""
    page = context.new_page()
    yield page
    page.close()


def show_card(notebook, env):
    """Return the output of a cell that shows the card in an environment."""
    place = "mcp_notebook.kernel.notebook.public_address"
    return notebook.run(
        f"from {place} import build_address_card, find_public_address\n"
        f"display(build_address_card(find_public_address({env})), raw=True)"
    )


def test_a_page_of_another_origin_is_not_taken_for_the_host(page):
    page.set_content(build_address_card(find_public_address(HUB))["text/html"])
    expect(page.locator("code[title=settings]")).to_contain_text(
        "https://HOST/user/ada/mcp-notebook"
    )


def test_on_binder_a_button_copies_the_settings_with_the_token_that_the_page_has(open_notebook):
    notebook = open_notebook("quickstart.ipynb")
    card = show_card(notebook, HUB | BINDER)
    origin = notebook.page.evaluate("location.origin")
    expect(card).to_contain_text(f"{origin}/user/ada/mcp-notebook")
    expect(card).not_to_contain_text("jupyter server list")
    look_at("binder", notebook, card)
    card.get_by_role("button", name="Copy with the token").click()
    expect(card.get_by_role("button", name="Copied")).to_be_visible()
    copied = notebook.page.evaluate("navigator.clipboard.readText()")
    assert json.loads(copied)["mcpServers"]["binder"] == {
        "type": "http",
        "url": f"{origin}/user/ada/mcp-notebook",
        "headers": {"Authorization": f"Bearer {TOKEN}"},
    }
    assert TOKEN not in card.inner_html()


def test_on_a_hub_the_pages_token_which_is_the_servers_own_is_not_copied(open_notebook):
    notebook = open_notebook("quickstart.ipynb")
    card = show_card(notebook, HUB)
    expect(card.get_by_role("link")).to_have_attribute("href", "/hub/token")
    card.get_by_role("button", name="Copy", exact=True).first.click()
    copied = notebook.page.evaluate("navigator.clipboard.readText()")
    assert json.loads(copied)["mcpServers"]["jupyterhub"]["headers"] == {
        "Authorization": "Bearer TOKEN"
    }


def test_a_line_that_could_not_be_copied_is_not_called_copied(page):
    page.set_content(f"<code>%mcp panel</code>{COPY_BUTTON}")
    page.evaluate("document.execCommand = () => false")
    page.get_by_role("button").click()
    expect(page.get_by_role("button")).to_have_text("Selected")
    assert page.evaluate("getSelection().toString()") == "%mcp panel"
