"""The side panel of a page, as a user has it beside the notebook."""

import re

from lab_page import SOON, NotebookPage
from playwright.sync_api import Locator, expect


class SidePanel:
    """The panel of one page.

    Args:
        notebook: The page, with a notebook.
    """

    def __init__(self, notebook: NotebookPage) -> None:
        self.notebook = notebook
        self.place = notebook.page.locator("#mcp-notebook-panel")

    def open(self) -> "SidePanel":
        """Show it, as its command does."""
        self.notebook.execute("mcp-notebook:open-panel")
        expect(self.place).to_be_visible(timeout=SOON)
        return self

    def section(self, title: str) -> Locator:
        """Return a part of it."""
        return self.place.get_by_role("region", name=re.compile(rf"^{title}( \d+)?$"))

    def button(self, name: str) -> Locator:
        """Return a button."""
        return self.place.get_by_role("button", name=name, exact=True)

    def expect_text(self, text: str, *, section: str | None = None) -> None:
        """Wait until it says something."""
        place = self.place if section is None else self.section(section)
        expect(place).to_contain_text(text, timeout=SOON)
