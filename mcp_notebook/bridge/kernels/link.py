"""Our end of one link: the conversation with a kernel, from its welcome to its end.

Runs on the event loop of a bridge or of a Jupyter server. The end of the stream reveals the death
of a kernel: all its calls are answered at once. When this side closes the link, it cancels its
calls, which would otherwise continue in the kernel.
"""

import itertools
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, get_args

import anyio

from mcp_notebook.bridge.kernels.kernel_requests import REPLIES, KernelRequests, Reply
from mcp_notebook.bridge.kernels.running_call import NO_LISTENER, Listener, RunningCall
from mcp_notebook.content import Result, Text
from mcp_notebook.discovery.greeting import greet
from mcp_notebook.discovery.records import Record, is_alive
from mcp_notebook.errors import (
    FrameError,
    FrameTooLarge,
    InvalidArguments,
    KernelGone,
    LinkError,
)
from mcp_notebook.settings.settings import ErrorDetail
from mcp_notebook.text.missing_tools import (
    MissingTool,
    explain_dead_kernel,
    explain_departed_kernel,
    explain_lost_link,
)
from mcp_notebook.wire import messages
from mcp_notebook.wire.frames import FrameProtocol

logger = logging.getLogger(__name__)

_DEATH_CHECK_INTERVAL = 0.02
"""Seconds between two checks whether the process of a closed link has ended."""

OnTools: TypeAlias = Callable[[messages.Welcome | messages.Tools], None]
"""Takes the message with a kernel's tools."""
_OfCall: TypeAlias = (
    messages.Returned
    | messages.Progress
    | messages.Log
    | messages.Ask
    | messages.Withdraw
    | messages.TaskState
)
_OF_CALLS = get_args(_OfCall)
OfPanel: TypeAlias = messages.NotebookState | messages.ShowPanel
"""What a kernel says after a `WatchNotebook`."""
_FromKernel: TypeAlias = (
    _OfCall | Reply | OfPanel | messages.Tools | messages.ResourcesChanged | messages.Goodbye
)
_FROM_KERNELS = get_args(_FromKernel)
"""The messages that kernels send after their welcome."""


class Link:
    """The conversation with one kernel, from its welcome to its end.

    Args:
        record: Where the kernel listens.
        on_tools: Called with the kernel's tools whenever they change.
        on_resources: Called when declared resources may have changed.
        inspects: Whether the kernel's variables are offered.
    """

    def __init__(
        self,
        record: Record,
        on_tools: OnTools,
        on_resources: Callable[[messages.ResourcesChanged], None] = lambda _message: None,
        *,
        inspects: bool = False,
    ) -> None:
        self.record = record
        self._inspects = inspects
        self._on_tools = on_tools
        self._on_resources = on_resources
        self._calls: dict[int, RunningCall] = {}
        self._told = messages.Clients(clients=[])
        """The last message to the kernel about the bridge's clients."""
        self._next_id = itertools.count(1).__next__
        self._connection: FrameProtocol | None = None
        self._goodbye: str | None = None
        self.is_unloaded = False
        """Whether it has ended because the notebook unloaded mcp_notebook: the kernel runs on."""
        self._ended = 0.0
        """When the conversation ended, in seconds since the epoch."""
        self.failure: str | None = None
        """Why the conversation failed."""
        self.is_understood = True
        """Whether it did not fail because of what the kernel sent."""
        self._on_panel: Callable[[OfPanel], None] = lambda _message: None
        self.entry_id = record.id
        """The id of its notebook in the catalogue."""
        self.place = 0
        """Its number among all links that the bridge has ever had, from 1."""
        self.is_open = False
        """Whether calls can be started."""
        self.requests = KernelRequests(record.name, self._next_id, self._send)
        """Requests for the kernel's resources and tasks, and for consent in its notebook."""
        self.initial_calls: tuple[messages.CallInfo, ...] = ()
        """The calls, from any bridge, that the kernel had when this conversation began."""
        self.initial_tools: tuple[messages.ToolInfo, ...] = ()
        """The tools, prompts and resources that the kernel had at that time, in order."""
        self.end = anyio.Event()
        """Set when the conversation has ended and all its calls have been answered."""
        self._holds = 0
        self.last_use = time.monotonic()
        """When a call or request last sent or received something, on the monotonic clock."""
        self.last_use_of_user: float | None = None
        """When the user last called one of its tools; None if he has not."""
        self.keeps_results = False
        """Whether the kernel may hold results of tasks."""

    @property
    def open_calls(self) -> int:
        """The number of open calls."""
        return len(self._calls)

    @property
    def is_in_use(self) -> bool:
        """Whether calls or requests are open, or about to be made."""
        return bool(self._calls or self._holds or self.requests.are_open)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Count as in use during the block, in which a call is prepared."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            self.note_use()

    def note_use(self, *, is_users: bool = False) -> None:
        """Note that a call is about to be made, perhaps by the user."""
        self.last_use = time.monotonic()
        if is_users:
            self.last_use_of_user = self.last_use

    async def connect(self) -> None:
        """Connect, and wait for the kernel's welcome and its tools.

        Raises:
            LinkError: The kernel does not answer, or refuses the connection.
        """
        try:
            greeting = await greet(self.record, inspects=self._inspects)
            self._connection = greeting.connection
            self._take_welcome(greeting.welcome)
            self.is_open = True
        except LinkError:
            raise
        except Exception as error:
            name = self.record.name
            logger.exception("The welcome of %s could not be handled", name)
            raise LinkError(f"The tools of {name!r} could not be read: {error!r}.") from error
        finally:
            if not self.is_open:
                self.close()

    def _take_welcome(self, welcome: messages.Welcome) -> None:
        self.initial_calls = tuple(welcome.calls)
        self.initial_tools = tuple(welcome.tools)
        self.requests.open(welcome)
        self._on_tools(welcome)

    async def listen(self) -> None:
        """Handle messages until the conversation ends; `close` answers its calls.

        An error in one message is logged and answers its call; the link stays open.
        """
        assert self._connection is not None
        try:
            await self._connection.listen(self._take)
        except (FrameError, OSError) as error:
            logger.warning("The link to %s is closed: %s", self.record.name, error)
            self.failure = f"The link to the kernel failed: {error}"
            self.is_understood = not isinstance(error, FrameError)
        finally:
            self.is_open = self.requests.is_open = False
            self._ended = time.time()

    def explain_end(self) -> MissingTool:
        """Explain why the kernel's tools are missing, now that the conversation has ended."""
        name = self.record.name
        if self._goodbye is not None:
            return explain_departed_kernel(name, self._goodbye, self._ended)
        if is_alive(self.record):
            return explain_lost_link(name, self._ended)
        return explain_dead_kernel(name, self._ended)

    def close(self, reason: str | None = None) -> None:
        """End the conversation.

        Args:
            reason: Why its open calls are lost; None to let the link describe it.
        """
        self.is_open = False
        reason = reason or self._describe_end()
        self.end_calls(reason)
        self.requests.close(reason)
        if self._connection is not None:
            self._connection.transport.close()

    def end_calls(self, reason: str) -> None:
        """Cancel all open calls, and answer them with the reason."""
        for call in self._calls.values():
            call.cancel("The bridge was stopped.")
            call.end(KernelGone(reason))
        self._calls.clear()

    def watch(self, on_panel: Callable[[OfPanel], None]) -> None:
        """Ask for the notebook's state, now and after each change."""
        self._on_panel = on_panel
        self._send(messages.WatchNotebook())

    def tell_clients(self, message: messages.Clients) -> None:
        """Tell the kernel, for display, of the bridge's clients, if there is something new."""
        if message != self._told:
            self._told = message
            assert self._connection is not None
            self._connection.send(message)

    def tell_unknown_call(self, message: messages.UnknownCall) -> None:
        """Tell the kernel, for display, of a call of a tool that no notebook has."""
        assert self._connection is not None
        self._connection.send(message)

    async def wait_for_death(self) -> None:
        """Wait until the process is gone, unless the kernel said goodbye.

        A process's streams end a moment before the process, so it would still seem to be alive.
        """
        while self._goodbye is None and self.failure is None and is_alive(self.record):  # noqa: ASYNC110 - not a child
            await anyio.sleep(_DEATH_CHECK_INTERVAL)

    def start_call(  # noqa: PLR0913 - the fields of one message
        self,
        tool: str,
        arguments: dict[str, Any],
        listener: Listener = NO_LISTENER,
        *,
        can_elicit: bool = False,
        shows_views: bool = False,
        client: messages.ClientInfo | None = None,
        confirmed: str | None = None,
        task_owner: str | None = None,
        may_become_task: bool = False,
        guest: str = "",
        errors: ErrorDetail = "full",
        is_trial: bool = False,
    ) -> RunningCall:
        """Run a tool in the kernel.

        Args:
            tool: Its name in the kernel.
            arguments: The arguments.
            listener: Receives the call's progress and log messages.
            can_elicit: Whether the client's user can be asked.
            shows_views: Whether the client shows live views of results.
            client: The calling program, as it describes itself.
            confirmed: The revision of the tool that a person has agreed to.
            task_owner: Make the call a task of this owner at once.
            may_become_task: Whether it may become one later, which reports its progress.
            guest: The caller, unless it is the user.
            errors: What the caller gets of a failing tool's error.
            is_trial: Run it in a copy of the kernel, and tell what it changed there.

        Raises:
            KernelGone: The kernel died or left.
            InvalidArguments: They are too large to be sent.
        """
        if not self.is_open:
            raise KernelGone(self._describe_end())
        call = RunningCall(self._next_id(), self._send)
        call.may_become_task = may_become_task
        self._start(
            call,
            messages.Call(
                id=call.id,
                tool=tool,
                arguments=arguments,
                progress=listener.progress is not None or may_become_task,
                log_level=listener.log_level,
                can_elicit=can_elicit,
                shows_views=shows_views,
                client=client or messages.ClientInfo(),
                confirmed=confirmed,
                task_owner=task_owner,
                guest=guest,
                errors=errors,
                is_trial=is_trial,
            ),
        )
        return call

    def _start(self, call: RunningCall, message: messages.AnyMessage) -> None:
        """Send a call; if the kernel has just gone, it ends like all open calls."""
        assert self._connection is not None
        try:
            self._connection.send(message)
        except FrameTooLarge as error:
            raise InvalidArguments(
                f"The arguments are too large to be sent to the kernel: {error} Send less at once."
            ) from error
        self._calls[call.id] = call
        self.note_use()

    def _send(self, message: messages.AnyMessage) -> None:
        assert self._connection is not None
        self._connection.send(message)
        self.note_use()

    def _take(self, message: messages.AnyMessage, attachments: list[bytes]) -> None:
        if not isinstance(message, _FROM_KERNELS):
            raise FrameError(f"A kernel never sends {message.type!r} messages.")
        try:
            self._handle(message, attachments)
        except Exception as error:
            what = f"A {message.type!r} message of {self.record.name} could not be handled"
            is_ours = not isinstance(error, FrameError)  # otherwise the fault is the kernel's
            logger.warning("%s: %s", what, error, exc_info=is_ours)
            self._answer_failure(message, error)

    def _handle(self, message: _FromKernel, attachments: list[bytes]) -> None:
        if isinstance(message, _OF_CALLS):
            self._tell_call(message, attachments)
        match message:
            case messages.Tools():
                self._on_tools(message)
            case messages.ResourcesChanged():
                self._on_resources(message)
            case messages.Goodbye():
                self._goodbye, self.is_unloaded = message.reason, message.is_unload
            case messages.NotebookState() | messages.ShowPanel():
                self._on_panel(message)
        if isinstance(message, REPLIES):
            self.requests.take(message, attachments)
            self.note_use()

    def _tell_call(self, message: _OfCall, attachments: list[bytes]) -> None:
        if (call := self._calls.get(message.id)) is not None:
            call.handle(message, attachments)
            self.keeps_results = self.keeps_results or call.task is not None
            self.note_use()
            if isinstance(message, messages.Returned):
                del self._calls[message.id]

    def _answer_failure(self, message: _FromKernel, error: Exception) -> None:
        """End the call whose result could not be handled, as no other result will come."""
        if isinstance(message, messages.Returned) and message.id in self._calls:
            text = f"The result of the call could not be read: {type(error).__name__}: {error}"
            self._calls.pop(message.id).end(Result([Text(text)], is_error=True))

    def _describe_end(self) -> str:
        """Return the error for open calls whose link has ended."""
        name = self.record.name
        if self._goodbye is not None:
            return (
                f"The call was lost: {self._goodbye} The tools of {name!r} return when its cells "
                "have run again."
            )
        if self.failure is not None:
            return f"The call was lost: {self.failure} (notebook {name!r})"
        if is_alive(self.record):
            return f"The kernel of {name!r} closed the link, and the call was lost. Call again."
        return (
            f"The kernel of {name!r} died, and the call was lost. Its tools return when the user "
            "has restarted the notebook's kernel and run its cells again."
        )
