"""The requests about skills: ``skills/list``, ``skills/get`` and ``resources/directory/read``.

Runs on the bridge's event loop.
"""

from collections.abc import Awaitable, Callable, Sequence

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.server.forms.result_forms import replace_surrogates
from mcp_notebook.bridge.server.listing.pages import divide, find_page
from mcp_notebook.bridge.server.resources.skills import (
    Form,
    list_children,
    list_skills,
)
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_notebook.protocol.methods import ListParameters, UriParameters
from mcp_notebook.text.wording import shorten

_MAX_URI = 200
"""Characters of a URI in an error."""


class SkillRequests:
    """Answers the requests of one bridge's clients for skills.

    Args:
        list_entries: Returns the resources that a caller may read.
        page_size: Skills, or files, on a page.
        ready: Waits until the first notebooks can be expected, if they need time to start.
    """

    def __init__(
        self,
        list_entries: Callable[[Caller], Sequence[CatalogEntry]],
        page_size: int,
        ready: Callable[[], Awaitable[None]],
    ) -> None:
        self._list_entries = list_entries
        self._page_size = page_size
        self._ready = ready

    async def list_skills(self, request: ClientRequest, params: ListParameters) -> Form:
        """Answer ``skills/list``."""
        skills = list_skills(await self._list_files(request))
        return self._divide("skills", skills, params.cursor)

    async def get_skill(self, request: ClientRequest, params: UriParameters) -> Form:
        """Answer ``skills/get``."""
        for skill in list_skills(await self._list_files(request)):
            if skill["uri"] == params.uri:
                return {"skill": skill}
        uri = replace_surrogates(shorten(params.uri, _MAX_URI))
        what = f"No skill is served at {uri!r}. `skills/list` lists the skills."
        raise ProtocolError(INVALID_PARAMS, what, {"uri": uri})

    async def read_directory(self, request: ClientRequest, params: UriParameters) -> Form:
        """Answer ``resources/directory/read``."""
        files = await self._list_files(request)
        children = list_children(params.uri, files)
        if children:
            return self._divide("resources", children, params.cursor)
        uri = replace_surrogates(shorten(params.uri, _MAX_URI))
        step = "`skills/list` lists the skills and their files, which `resources/read` reads."
        what = f"{uri!r} is not a folder of a skill. {step}"
        raise ProtocolError(INVALID_PARAMS, what, {"uri": uri})

    async def _list_files(self, request: ClientRequest) -> list[CatalogEntry]:
        await self._ready()
        entries = self._list_entries(request.caller)
        return [entry for entry in entries if entry.tool.text is not None]

    def _divide(self, name: str, items: Sequence[Form], cursor: str | None) -> Form:
        page = find_page(divide(items, self._page_size), cursor)
        form = {name: list(page.items)}
        return form if page.next_cursor is None else {**form, "nextCursor": page.next_cursor}
