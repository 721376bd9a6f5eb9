"""The resources that authors declare: their lists, and which one a client means by a URI.

Runs on the bridge's event loop; pure. `resources` answers the requests; it adds what kernels keep
of shortened results. To read a resource is a call of its function, unless it is a fixed text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from msgspec import Struct, field

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.kernels.served_uris import is_template, make_long_uri
from mcp_notebook.bridge.server.forms.tool_form import make_declared_form
from mcp_notebook.bridge.server.resources.uri_templates import match
from mcp_notebook.errors import CallError, ToolGone, UnknownResource
from mcp_notebook.protocol.versions import has_feature
from mcp_notebook.text.wording import format_moment, shorten, suggest
from mcp_notebook.wire import messages

MAX_LISTED = 20
"""URIs that an error lists."""
MAX_SHOWN = 200
"""Characters of a client's URI in an error."""
_VARIABLE = re.compile(r"\{[^}]*\}")


class FoundResource(Struct, frozen=True):
    """The resource that a client means by a URI."""

    entry: CatalogEntry
    arguments: dict[str, Any] = field(default_factory=dict)
    """The values of the template's variables in the URI."""
    own_uri: str = ""
    """The URI as the notebook knows it: without the notebook's name."""


class DeclaredResources:
    """The declared resources, as callers see them.

    Args:
        tools: The declarations.
        find_modified: Returns when a resource was last modified, given its entry and its URI as the
            notebook knows it.
    """

    def __init__(
        self,
        tools: PermittedTools,
        find_modified: Callable[[CatalogEntry, str], float | None] = lambda _entry, _uri: None,
    ) -> None:
        self._tools = tools
        self._find_modified = find_modified

    def list_entries(self, caller: Caller) -> Sequence[CatalogEntry]:
        """Return the resources and templates that a caller may read, in the catalogue's order."""
        return self._tools.list_entries(caller, "resource")

    def list_forms(self, caller: Caller, version: str) -> list[dict[str, Any]]:
        """Return the resources with a fixed URI and the listed ones of templates, in MCP's form."""
        entries = self.list_entries(caller)
        forms = [
            self._add_time(_make_form(entry, version), entry, entry.tool.uri or "", version)
            for entry in entries
            if not is_template(entry.uri)
        ]
        for entry in entries:
            forms += [
                self._add_time(
                    _make_item_form(entry, item, version),
                    entry,
                    _expand(entry.tool.uri or "", item),
                    version,
                )
                for item in entry.tool.items
            ]
        return forms

    def _add_time(
        self, form: dict[str, Any], entry: CatalogEntry, own_uri: str, version: str
    ) -> dict[str, Any]:
        """Add when a resource was last modified."""
        at = self._find_modified(entry, own_uri)
        if at is None or not has_feature(version, "lastModified"):
            return form
        return {**form, "annotations": {"lastModified": format_moment(at)}}

    def list_template_forms(self, caller: Caller, version: str) -> list[dict[str, Any]]:
        """Return the templates, in MCP's form."""
        entries = self.list_entries(caller)
        return [_make_form(entry, version) for entry in entries if is_template(entry.uri)]

    def find(self, caller: Caller, uri: str) -> FoundResource | None:
        """Return the resource that a caller means by a URI; None if it may read none of it.

        Raises:
            UnknownResource: Resources of several notebooks have the URI.
        """
        entries = self.list_entries(caller)
        for list_uris in (_list_served, _list_long):
            for entry, served in list_uris(entries):
                if not is_template(served) and served == uri:
                    return _make_found(entry, {}, served, uri)
        for list_uris in (_list_served, _list_long):
            for entry, served in list_uris(entries):
                if is_template(served) and (values := match(served, uri)) is not None:
                    return _make_found(entry, values, served, uri)
        shared = [entry for entry in entries if _fits(entry.tool.uri or "", uri)]
        if shared:
            uris = " or ".join(repr(entry.uri) for entry in shared)
            raise UnknownResource(
                uri,
                f"Several open notebooks have a resource {uri!r}, so it was not read. Read "
                f"{uris} instead.",
            )
        return None

    def explain_unknown(self, caller: Caller, uri: str) -> CallError:
        """Return the error for a URI that fits no resource."""
        for missing in self._tools.list_missing_uris():
            if _fits(missing, uri):
                try:
                    self._tools.find(caller, missing, "resource")
                except ToolGone as error:
                    return UnknownResource(uri, str(error))
                except CallError:  # the caller never saw it
                    continue
        uris = [entry.uri for entry in self.list_entries(caller)]
        if not uris:
            shown = shorten(uri, MAX_SHOWN)
            none = (
                f"No resource has the address {shown!r}. No open notebook declares one now, and "
                "those of shortened results begin with notebook://: copy the whole address."
            )
            return UnknownResource(uri, None if uri.startswith("notebook:") else none)
        close = suggest(uri[:MAX_SHOWN], uris)
        meant = f"Did you mean {close!r}? " if close else ""
        listed = ", ".join(uris[:MAX_LISTED]) + (", ..." if len(uris) > MAX_LISTED else "")
        return UnknownResource(
            uri,
            f"No resource has the address {shorten(uri, MAX_SHOWN)!r}. {meant}The "
            f"notebooks' resources: {listed}.",
        )


def _make_found(
    entry: CatalogEntry, values: dict[str, Any], served: str, uri: str
) -> FoundResource:
    own_uri = uri
    if served != entry.tool.uri:
        own_uri = uri.replace(f"{entry.notebook}/", "", 1)
    return FoundResource(entry, values, own_uri)


def _list_served(entries: Sequence[CatalogEntry]) -> Iterator[tuple[CatalogEntry, str]]:
    yield from ((entry, entry.uri) for entry in entries)


def _list_long(entries: Sequence[CatalogEntry]) -> Iterator[tuple[CatalogEntry, str]]:
    for entry in entries:
        yield entry, make_long_uri(entry.notebook, entry.tool.uri or "")


def _fits(own_uri: str, uri: str) -> bool:
    return match(own_uri, uri) is not None if is_template(own_uri) else own_uri == uri


def _make_form(entry: CatalogEntry, version: str) -> dict[str, Any]:
    info = entry.tool
    has_title = has_feature(version, "title")
    matter = info.front_matter or {}
    is_file = info.text is not None  # of a skill: its name is that of the skill, or of the file
    fields = {
        "uriTemplate" if is_template(entry.uri) else "uri": entry.uri,
        "name": matter.get("name") or (info.name.rpartition("/")[2] if is_file else info.name),
        "title": info.title if has_title else None,
        "description": info.description or (None if has_title else info.title),
        "mimeType": info.mime_type,
        "size": None if info.text is None else len(info.text.encode()),
        "icons": info.icons if has_feature(version, "icons") else None,
        "_meta": info.meta if has_feature(version, "_meta") else None,
    }
    return make_declared_form({name: value or None for name, value in fields.items()})


def _make_item_form(entry: CatalogEntry, item: messages.ListedItem, version: str) -> dict[str, Any]:
    fields = {
        "uri": _expand(entry.uri, item),
        "name": item.value,
        "description": item.description,
        "mimeType": entry.tool.mime_type,
        "_meta": item.meta if has_feature(version, "_meta") else None,
    }
    return make_declared_form({name: value or None for name, value in fields.items()})


def _expand(template: str, item: messages.ListedItem) -> str:
    """Return the URI of a listed resource of a template, which has one variable."""
    return _VARIABLE.sub(quote(item.value, safe=""), template)
