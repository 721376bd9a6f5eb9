"""What a bridge asks one kernel for besides calls: which resources it has, and their contents.

Runs on the bridge's event loop. A `Link` sends the requests, hands over the replies, and ends the
requests when the kernel is gone.
"""

import logging
from collections.abc import Callable
from typing import TypeAlias

from mcp_notebook.bridge.kernels.pending_requests import PendingRequests
from mcp_notebook.content import Resource
from mcp_notebook.errors import FrameError, KernelGone, ResourceFailed, UnknownResource
from mcp_notebook.wire import content_blocks, messages

logger = logging.getLogger(__name__)

LIST_LIMIT = 2.0
"""Seconds that a kernel has to list its resources; its link thread does so immediately."""
READ_LIMIT = 60.0
"""Seconds that a kernel has to make the content of a resource and send it."""

_Reply: TypeAlias = tuple[messages.Resources | messages.Contents, list[bytes]]


class ResourceRequests:
    """The requests for one kernel's resources.

    Args:
        notebook: The notebook's name, for messages.
        next_id: Returns a number that no other request of the conversation has.
        send: Sends a message to the kernel, if it is still connected.
    """

    def __init__(
        self,
        notebook: str,
        next_id: Callable[[], int],
        send: Callable[[messages.AnyMessage], None],
    ) -> None:
        self._notebook = notebook
        self._requests: PendingRequests[_Reply] = PendingRequests(next_id, send)
        self.is_possible = False
        """Whether the kernel is connected and answers such requests."""

    async def list_resources(self, after: int, limit: int) -> list[messages.ResourceInfo]:
        """Return the resources that can be read now; none if the kernel does not answer in time.

        Args:
            after: Return only resources with a higher number.
            limit: The greatest number of resources to return.
        """
        try:
            reply, _ = await self._ask(
                lambda number: messages.ListResources(id=number, after=after, limit=limit),
                LIST_LIMIT,
            )
        except (KernelGone, TimeoutError) as error:
            logger.warning(
                "The resources of %s are left out of the list: %r", self._notebook, error
            )
            return []
        assert isinstance(reply, messages.Resources)
        return reply.resources

    async def read_resource(self, uri: str, most: int | None = None) -> Resource:
        """Return the content of a resource.

        Args:
            uri: Of the resource.
            most: The most bytes to return; None for as many as the kernel sends.

        Raises:
            UnknownResource: No such resource exists, or it has expired.
            ResourceFailed: Its content cannot be made or sent.
            KernelGone: The kernel is gone, and the resource with it.
        """
        try:
            reply, attachments = await self._ask(
                lambda number: messages.ReadResource(id=number, uri=uri, most=most), READ_LIMIT
            )
        except TimeoutError:
            raise ResourceFailed(
                f"The resource {uri!r} was not ready within {READ_LIMIT:g} s, the time limit. "
                "Read another form of it, or ask the tool for less."
            ) from None
        assert isinstance(reply, messages.Contents)
        if reply.error is not None:
            raise (
                UnknownResource(uri, reply.error) if reply.unknown else ResourceFailed(reply.error)
            )
        try:
            return content_blocks.unpack_resource(reply, attachments)
        except FrameError as error:
            raise ResourceFailed(f"The resource {uri!r} could not be read: {error}") from error

    async def _ask(
        self,
        make_message: Callable[[int], messages.ListResources | messages.ReadResource],
        seconds: float,
    ) -> _Reply:
        if not self.is_possible:
            raise KernelGone(f"The kernel of {self._notebook!r} has no resources.")
        return await self._requests.ask(make_message, seconds=seconds)

    def take_reply(
        self, message: messages.Resources | messages.Contents, attachments: list[bytes]
    ) -> None:
        """Take what the kernel sent; nothing happens if nobody waits for it."""
        self._requests.take(message.id, (message, attachments))

    def end(self, reason: str) -> None:
        """End all requests without a reply, for this reason."""
        self._requests.end(reason)

    def close(self) -> None:
        """End all requests: the kernel is gone."""
        self.is_possible = False
        self.end(
            f"The kernel of {self._notebook!r} is gone, and its resources with it. Call the tool "
            "again when the notebook's cells have run again."
        )
