"""The requests to one kernel besides calls: resources, tasks, consent, completion, side panels.

Runs on the event loop of a bridge or of a Jupyter server. Each request has an id and awaits the
reply with the same id. A `Link` hands over the replies, and ends the requests when the kernel is
gone.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from mcp_notebook.content import Resource, Result
from mcp_notebook.errors import FrameError, KernelGone, ResourceFailed, UnknownResource
from mcp_notebook.wire import content_blocks, messages

logger = logging.getLogger(__name__)

LIST_LIMIT = 2.0
"""Seconds that a kernel has to list its resources; its link thread answers immediately."""
READ_LIMIT = 60.0
"""Seconds that a kernel has to produce and send the content of a resource."""
TASK_LIMIT = 10.0
"""Seconds that a kernel has to answer about a task. Its link thread answers immediately, unless C
code holds the GIL."""

COMPLETE_LIMIT = 3.0
"""Seconds that a kernel has to complete an argument: the user is typing."""

_OfResources: TypeAlias = messages.ListResources | messages.ReadResource
PanelRequest: TypeAlias = (
    messages.SwitchTool
    | messages.RemoveTool
    | messages.LockTool
    | messages.AnswerConsent
    | messages.AskCall
    | messages.StopCall
)
"""A request of a side panel's user; a bridge sends none."""
_Request: TypeAlias = (
    _OfResources | messages.AskConsent | messages.TaskRequest | messages.Complete | PanelRequest
)
Reply: TypeAlias = (
    messages.Resources
    | messages.Contents
    | messages.Consent
    | messages.TaskState
    | messages.Completed
    | messages.PanelAnswer
    | messages.CallDetails
    | messages.CallStopped
)
"""The replies of a kernel."""
REPLIES = get_args(Reply)


@dataclass(frozen=True)
class KernelTask:
    """The state of a task in its kernel."""

    info: messages.TaskInfo
    result: Result | None = None
    """The result of a task that has ended."""


@dataclass(frozen=True)
class _Pending:
    """A request that has no reply yet."""

    request: _Request
    reply: asyncio.Future[tuple[Reply, list[bytes]]]

    @property
    def has_reply(self) -> bool:
        return self.reply.done() and not self.reply.cancelled()


class KernelRequests:
    """The requests to one kernel.

    Args:
        notebook: The notebook's name, for messages.
        next_id: Returns an id that is unique in the conversation.
        send: Sends a message to the kernel, if it is still connected.
    """

    def __init__(
        self,
        notebook: str,
        next_id: Callable[[], int],
        send: Callable[[messages.AnyMessage], None],
    ) -> None:
        self._notebook = notebook
        self._next_id = next_id
        self._send = send
        self._pending: dict[int, _Pending] = {}
        """The open requests, by id."""
        self.is_open = False
        """Whether the kernel is connected."""
        self.can_ask_consent = False
        """Whether the kernel is connected and can ask for consent in its notebook."""

    @property
    def are_open(self) -> bool:
        """Whether any request has no reply yet."""
        return bool(self._pending)

    def open(self, welcome: messages.Welcome) -> None:
        """Enable requests: the kernel has accepted the conversation."""
        self.is_open = True
        self.can_ask_consent = welcome.consent

    def take(self, reply: Reply, attachments: list[bytes]) -> None:
        """Take a reply from the kernel; ignored if its request is not open."""
        pending = self._pending.get(reply.id)
        if pending is not None and not pending.reply.done():
            pending.reply.set_result((reply, attachments))

    def end_reads(self, reason: str) -> None:
        """Fail the open requests for resources with a reason."""
        self._end(reason, get_args(_OfResources))

    def close(self, reason: str) -> None:
        """Fail all open requests, because the kernel is gone."""
        self.is_open = self.can_ask_consent = False
        self.end_reads(
            f"The kernel of {self._notebook!r} is gone, and its resources with it. Call the tool "
            "again when the notebook's cells have run again."
        )
        self._end(reason)

    # -- resources ---------------------------------------------------------------------------------

    async def list_resources(
        self, after: int, limit: int, *, seconds: float = LIST_LIMIT
    ) -> list[messages.ResourceInfo]:
        """Return the resources that can be read now; none if the kernel does not answer in time.

        Args:
            after: Return only resources with a higher number.
            limit: The greatest number of resources to return.
            seconds: How long the kernel has to answer.
        """
        message = messages.ListResources(id=self._next_id(), after=after, limit=limit)
        try:
            reply, _ = await self._ask_for_resource(message, seconds)
        except (KernelGone, TimeoutError) as error:
            logger.warning(
                "The resources of %s are left out of the list: %r", self._notebook, error
            )
            return []
        assert isinstance(reply, messages.Resources)
        return reply.resources

    async def read_resource(
        self, uri: str, most: int | None = None, *, guest: str = "", seconds: float = READ_LIMIT
    ) -> Resource:
        """Return the content of a resource.

        Args:
            uri: The resource's URI.
            most: The most bytes to return; None for no limit.
            guest: The caller, unless it is the user.
            seconds: How long the kernel has to produce and send it.

        Raises:
            UnknownResource: No such resource exists, or it has expired.
            ResourceFailed: Its content cannot be produced or sent.
            KernelGone: The kernel is gone, and the resource with it.
        """
        message = messages.ReadResource(id=self._next_id(), uri=uri, most=most, guest=guest)
        try:
            reply, attachments = await self._ask_for_resource(message, seconds)
        except TimeoutError:
            raise ResourceFailed(
                f"The resource {uri!r} was not ready within {seconds:g} s, the time limit. "
                "Read another form of it, or call the tool for a smaller result."
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

    async def _ask_for_resource(
        self, message: _OfResources, seconds: float
    ) -> tuple[Reply, list[bytes]]:
        if not self.is_open:
            raise KernelGone(f"The kernel of {self._notebook!r} has no resources.")
        return await self._ask(message, seconds)

    # -- tasks -------------------------------------------------------------------------------------

    async def find_task(
        self, task: str, owner: str, *, after: int | None = None
    ) -> KernelTask | None:
        """Return a task; None if the kernel has no such task of this owner.

        Args:
            task: Its id.
            owner: Its owner.
            after: Wait a while for the task to have another version than this one.

        Raises:
            KernelGone: The kernel is gone, and the task with it.
            TimeoutError: The kernel has not answered in time.
        """
        message = messages.AskTask(id=self._next_id(), task=task, owner=owner, after=after)
        wait = 0.0 if after is None else messages.MAX_TASK_WAIT
        return await self._ask_for_task(message, TASK_LIMIT + wait)

    async def answer_task(
        self, task: str, owner: str, answers: Mapping[str, messages.TaskAnswer]
    ) -> KernelTask | None:
        """Answer a task's open questions; otherwise like `find_task`.

        Args:
            task: Its id.
            owner: Its owner.
            answers: By question key; unknown keys are ignored.
        """
        message = messages.AnswerTask(
            id=self._next_id(), task=task, owner=owner, answers=dict(answers)
        )
        return await self._ask_for_task(message, TASK_LIMIT)

    async def cancel_task(self, task: str, owner: str) -> KernelTask | None:
        """Stop a task, which may end a moment later; otherwise like `find_task`."""
        message = messages.CancelTask(id=self._next_id(), task=task, owner=owner)
        return await self._ask_for_task(message, TASK_LIMIT)

    async def _ask_for_task(
        self, message: messages.TaskRequest, seconds: float
    ) -> KernelTask | None:
        if not self.is_open:
            raise KernelGone(f"The kernel of {self._notebook!r} has no tasks.")
        state, attachments = await self._ask(message, seconds)
        assert isinstance(state, messages.TaskState)
        if state.task is None:
            return None
        result = state.result
        unpacked = None if result is None else content_blocks.unpack_result(result, attachments)
        return KernelTask(state.task, unpacked)

    # -- consent -----------------------------------------------------------------------------------

    async def ask_consent(
        self, tool: str, text: str, *, seconds: float, session: messages.ConsentSession
    ) -> messages.ConsentDecision:
        """Show a question in the notebook until it is answered, and return the answer.

        When this coroutine is cancelled, the question is withdrawn.

        Args:
            tool: The tool's name.
            text: The question.
            seconds: How long the caller waits before it cancels this coroutine.
            session: See `messages.AskConsent.session`.

        Raises:
            KernelGone: The kernel is gone.
        """
        message = messages.AskConsent(
            id=self._next_id(), tool=tool, text=text, seconds=seconds, session=session
        )
        try:
            reply, _ = await self._ask(message, None)
        except asyncio.CancelledError:
            self._send(messages.WithdrawConsent(id=message.id))
            raise
        assert isinstance(reply, messages.Consent)
        return reply.decision

    # -- completion --------------------------------------------------------------------------------

    async def complete(
        self,
        declaration: str,
        argument: str,
        value: str,
        arguments: Mapping[str, str],
        *,
        guest: str = "",
    ) -> messages.Completed:
        """Return the values that an argument may have; none if the kernel does not answer in time.

        Args:
            declaration: The name of the prompt or resource in the kernel.
            argument: The argument.
            value: What was typed so far.
            arguments: The other arguments, as far as they are known.
            guest: The caller, unless it is the user.
        """
        message = messages.Complete(
            self._next_id(), declaration, argument, value, dict(arguments), guest
        )
        if not self.is_open:
            return messages.Completed(id=message.id)
        try:
            reply, _ = await self._ask(message, COMPLETE_LIMIT)
        except (KernelGone, TimeoutError) as error:
            logger.info("%r of %s could not be completed: %r", argument, self._notebook, error)
            return messages.Completed(id=message.id)
        assert isinstance(reply, messages.Completed)
        return reply

    # -- side panels -------------------------------------------------------------------------------

    async def ask_for_panel(
        self, make: Callable[[int], PanelRequest], seconds: float
    ) -> tuple[Any, Sequence[bytes]]:
        """Send a side panel's request, and return the answer with the attachments.

        Args:
            make: Makes the request, given its id.
            seconds: How long the kernel has to answer.

        Raises:
            KernelGone: The kernel is gone.
            TimeoutError: The kernel has not answered in time.
        """
        return await self._ask(make(self._next_id()), seconds)

    # -- all requests ------------------------------------------------------------------------------

    async def _ask(self, request: _Request, seconds: float | None) -> tuple[Reply, list[bytes]]:
        """Send a request, and return its reply and the attachments.

        Raises:
            KernelGone: The kernel is gone.
            TimeoutError: It has not answered in time; a later reply is ignored.
        """
        pending = _Pending(request, asyncio.get_running_loop().create_future())
        self._pending[request.id] = pending
        try:
            self._send(request)
            async with asyncio.timeout(seconds):
                return await pending.reply
        finally:
            del self._pending[request.id]
            is_read = isinstance(request, messages.ReadResource | messages.Complete)
            if is_read and self.is_open and not pending.has_reply:
                self._send(messages.EndRead(id=request.id))

    def _end(self, reason: str, kinds: tuple[type, ...] = (object,)) -> None:
        for pending in self._pending.values():
            if isinstance(pending.request, kinds) and not pending.reply.done():
                pending.reply.set_exception(KernelGone(reason))
