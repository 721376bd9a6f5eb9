"""The pages that clients show beside results, as resources ``ui://mcp-notebook/...``.

Runs on the bridge's event loop; a page is a file beside this module, read when a client first asks.
It loads nothing from anywhere: its styles and its script are in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

MIME_TYPE = "text/html;profile=mcp-app"
"""Of the pages of MCP Apps (specification of 2026-01-26, "UI Resource Format")."""


@dataclass(frozen=True)
class ViewPage:
    """A page that shows one kind of result."""

    file: str
    """Name of its file beside this module."""
    title: str

    @property
    def uri(self) -> str:
        """The URI that clients read it by."""
        return f"ui://mcp-notebook/{self.file}"

    @cached_property
    def html(self) -> str:
        """The page."""
        return files(__package__).joinpath(self.file).read_text("utf-8")

    @property
    def meta(self) -> dict[str, Any]:
        """Its ``_meta``: no permissions and, by leaving out ``csp``, no network."""
        return {"ui": {"prefersBorder": False}}


PAGES: Mapping[str, ViewPage] = {"result": ViewPage("result.html", "Result")}
"""By the kind of view, as in `messages.ToolInfo.view`."""
BY_URI = {page.uri: page for page in PAGES.values()}
"""The same pages by their URIs."""
