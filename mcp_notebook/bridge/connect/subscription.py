"""A client's ``subscriptions/listen`` (2026-07-28), kept open over restarts of the server.

Runs on the event loop of `mcp-notebook connect`. The request stays open for the client. When its
stream ends, it is sent again; the second acknowledgement is not passed on, but what the client
wants to hear of may have changed meanwhile, and it is told so.
"""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

import anyio
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from mcp_notebook.bridge.connect.exchange import STEADY, check_session, explain_reply, list_pauses
from mcp_notebook.bridge.connect.messages import Message, as_object, make_message, replace_id
from mcp_notebook.bridge.connect.remote import Remote
from mcp_notebook.errors import ConnectionLost, Unreachable

METHOD = "subscriptions/listen"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_KINDS = ("tools", "prompts", "resources")


class Subscription:
    """One subscription of the client.

    Args:
        request: The client's request.
        send: Sends a message to the client.
    """

    def __init__(self, request: Message, send: Callable[[Message], Awaitable[None]]) -> None:
        self._request = request
        self._send = send
        self.is_open = False
        """Whether a server has acknowledged it."""

    async def keep_open(self, remote: Remote, headers: Mapping[str, str]) -> None:
        """Pass on what comes until the server refuses; the caller cancels it for the client.

        Raises:
            RemoteError: The server refuses, or has never been reached.
        """
        pauses = list_pauses()
        while True:
            began = anyio.current_time()
            try:
                if await self._hear(remote, headers):
                    return
            except (ConnectionLost, Unreachable):
                if not self.is_open:
                    raise
            if anyio.current_time() - began > STEADY:
                pauses = list_pauses()
            await anyio.sleep(next(pauses))

    async def _hear(self, remote: Remote, headers: Mapping[str, str]) -> bool:
        """Pass on the messages of one stream, and return whether the client has its answer."""
        async with remote.post(self._request.body, headers) as reply:
            check_session(reply, headers, remote)
            async for message in reply.read():
                if message.is_answer:
                    if not message.is_answer_to(self._request):
                        continue
                    if self.is_open and "error" not in message.content:
                        return False  # the server is stopping
                    await self._send(replace_id(message, self._request.id))
                    return True
                if message.method == _ACKNOWLEDGED and self.is_open:
                    await self._announce_changes()
                else:
                    self.is_open = self.is_open or message.method == _ACKNOWLEDGED
                    await self._send(message)
            if reply.status != HTTPStatus.OK:
                raise await explain_reply(remote, reply)
        if not self.is_open:
            raise ConnectionLost(f"The connection to {remote.url} ended before the answer came.")
        return False

    async def _announce_changes(self) -> None:
        kinds = as_object(self._request.params.get("notifications"))
        meta = {"_meta": {SUBSCRIPTION_ID_META_KEY: self._request.id}}
        for kind in _KINDS:
            if kinds.get(f"{kind}ListChanged"):
                method = f"notifications/{kind}/list_changed"
                await self._send(make_message({"method": method, "params": meta}))
        uris = kinds.get("resourceSubscriptions")
        for uri in uris if isinstance(uris, list) else ():
            method = "notifications/resources/updated"
            await self._send(make_message({"method": method, "params": {"uri": uri, **meta}}))
