"""Buttons and scripts of outputs on pages that are not Jupyter's: exports, VS Code."""

import pytest
from playwright.sync_api import expect

from mcp_notebook.kernel.notebook.output_html import COPY_BUTTON
from mcp_notebook.kernel.notebook.public_address import build_address_card, find_public_address

pytestmark = pytest.mark.browser
HUB = {"JUPYTERHUB_SERVICE_PREFIX": "/user/ada/", "JPY_MCP_PATH": "/user/ada/mcp"}


@pytest.fixture
def page(context):
    """A page without Jupyter Server."""
    page = context.new_page()
    yield page
    page.close()


def test_a_page_of_another_origin_is_not_taken_for_the_host(page):
    page.set_content(build_address_card(find_public_address(HUB))["text/html"])
    expect(page.locator("code").first).to_have_text("https://HOST/user/ada/mcp")


def test_a_line_that_could_not_be_copied_is_not_called_copied(page):
    page.set_content(f"<code>%mcp panel</code>{COPY_BUTTON}")
    page.evaluate("document.execCommand = () => false")
    page.get_by_role("button").click()
    expect(page.get_by_role("button")).to_have_text("Selected")
    assert page.evaluate("getSelection().toString()") == "%mcp panel"
