"""The requests about skills: ``skills/list``, ``skills/get`` and ``resources/directory/read``.

Runs on the bridge's event loop; imported with the SDK.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.server.forms.result_forms import replace_surrogates
from mcp_notebook.bridge.server.listing.pages import divide, find_page
from mcp_notebook.bridge.server.resources.skills import (
    SKILL_SETTINGS,
    Form,
    list_children,
    list_skills,
)
from mcp_notebook.bridge.server.sessions.client_profile import SKILLS_EXTENSION
from mcp_notebook.bridge.server.sessions.client_request import find_caller
from mcp_notebook.bridge.server.sessions.protocol_error import INVALID_PARAMS, ProtocolError
from mcp_notebook.text.wording import shorten

_UNCACHED = {"ttlMs": 0, "cacheScope": "private"}
_MAX_URI = 200
"""Characters of a URI in an error."""


class UriParams(types.PaginatedRequestParams):
    """The parameters of ``skills/get`` and ``resources/directory/read``."""

    uri: str


class SkillRequests:
    """Answers the requests of one bridge's clients for skills.

    Args:
        list_entries: Returns the resources that a caller may read.
        default_caller: The caller if the transport does not name one.
        page_size: Skills, or files, on a page.
        ready: Waits until the first notebooks can be expected, if they need time to start.
    """

    def __init__(
        self,
        list_entries: Callable[[Caller], Sequence[CatalogEntry]],
        default_caller: Caller,
        page_size: int,
        ready: Callable[[], Awaitable[None]],
    ) -> None:
        self._list_entries = list_entries
        self._default_caller = default_caller
        self._page_size = page_size
        self._ready = ready

    def add_to(self, server: Server[Any]) -> None:
        """Declare the extension, and answer its requests."""
        server.extensions[SKILLS_EXTENSION] = SKILL_SETTINGS
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self._list)
        server.add_request_handler("skills/get", UriParams, self._get)
        server.add_request_handler("resources/directory/read", UriParams, self._read_directory)

    async def _list(
        self, ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> Form:
        skills = list_skills(await self._list_files(ctx))
        return self._divide("skills", skills, None if params is None else params.cursor) | _UNCACHED

    async def _get(self, ctx: ServerRequestContext[Any], params: UriParams) -> Form:
        for skill in list_skills(await self._list_files(ctx)):
            if skill["uri"] == params.uri:
                return {"skill": skill, **_UNCACHED}
        uri = replace_surrogates(shorten(params.uri, _MAX_URI))
        what = f"No skill is served at {uri!r}. `skills/list` lists the skills."
        raise ProtocolError(INVALID_PARAMS, what, {"uri": uri})

    async def _read_directory(self, ctx: ServerRequestContext[Any], params: UriParams) -> Form:
        files = await self._list_files(ctx)
        children = list_children(params.uri, files)
        if children:
            return self._divide("resources", children, params.cursor)
        uri = replace_surrogates(shorten(params.uri, _MAX_URI))
        if any(file.uri == params.uri for file in files):
            step = "It is a file: read it with `resources/read`."
        elif params.uri.endswith("/"):
            step = "Write the URI without a slash at its end."
        else:
            step = "`skills/list` lists the skills and their files."
        what = f"{uri!r} is not a folder of a skill. {step}"
        raise ProtocolError(INVALID_PARAMS, what, {"uri": uri})

    async def _list_files(self, ctx: ServerRequestContext[Any]) -> list[CatalogEntry]:
        await self._ready()
        caller = find_caller(ctx, self._default_caller)
        return [entry for entry in self._list_entries(caller) if entry.tool.text is not None]

    def _divide(self, name: str, items: Sequence[Form], cursor: str | None) -> Form:
        page = find_page(divide(items, self._page_size), cursor)
        form = {name: list(page.items)}
        return form if page.next_cursor is None else {**form, "nextCursor": page.next_cursor}
