"""Tells clients that the list of resources has changed: seldom, and once for each burst.

Runs on the bridge's event loop. Every result that is cut adds resources to the list, and a client
may fetch the whole list at each notice, so notices keep a distance. Whoever needs a resource at
once has the link to it in the result.
"""

import anyio
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ResourcesListChanged

from mcp_notebook.bridge.server.change_notices import ChangeNotices
from mcp_notebook.content import ResourceLink, Result
from mcp_notebook.wire import resource_uris

NOTICE_DELAY = 0.5
"""Seconds within which several results become one notice."""
NOTICE_INTERVAL = 10.0
"""Seconds between two notices."""


class ResourceNotices:
    """Notifies the clients of one bridge that results have added resources to the list.

    Args:
        changes: Knows the clients.
    """

    def __init__(self, changes: ChangeNotices) -> None:
        self._changes = changes
        self._change = anyio.Event()

    def note_result(self, result: Result) -> None:
        """Note the resources that a result has added, if it has."""
        if any(
            isinstance(block, ResourceLink) and resource_uris.find_kernel_id(block.uri) is not None
            for block in result.content
        ):
            self._change.set()

    async def run(self) -> None:
        """Notify all clients, once for each burst of results; runs forever."""
        while True:
            await self._change.wait()
            await anyio.sleep(NOTICE_DELAY)
            self._change = anyio.Event()
            await self._changes.broadcast(
                ResourcesListChanged(), ServerSession.send_resource_list_changed
            )
            await anyio.sleep(NOTICE_INTERVAL)
