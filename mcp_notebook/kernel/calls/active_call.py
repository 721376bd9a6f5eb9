"""A call with everything needed to run it: its client, its outputs, and how to stop it.

Runs in the user's kernel, on any thread. All calls of a notebook share the queue's lock: the
methods here hold it to change a call's state and whatever else several threads change.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgspec import Struct

from mcp_notebook.content import Result
from mcp_notebook.errors import CallError, Cancelled
from mcp_notebook.kernel.calls.call import Call, CallState
from mcp_notebook.kernel.calls.capture import Capture
from mcp_notebook.kernel.results.tracebacks import ErrorStyle, find_details, reveal_details
from mcp_notebook.kernel.schemas.output.output_schema import OutputSchema
from mcp_notebook.kernel.schemas.secrets import list_secrets
from mcp_notebook.kernel.tools.context import NO_CLIENT, Client, Context
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.kernel.tools.open_questions import Elicitations
from mcp_notebook.text.redaction import MASK, redact_arguments
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

INTERRUPTED = "The user interrupted the call in the notebook."
_MASKED = (
    "The {} {!r} failed. Its error is not shown to this client; the author finds it in "
    "the notebook's side panel and log, as call {}."
)
BY_INTERRUPT = "you, with the notebook's interrupt"


class StopRequest(Struct, frozen=True):
    """Why a call has to stop."""

    state: CallState
    """The state that it ends in."""
    error: CallError
    """The error for its client."""
    by: str = ""
    """Who stops it, and how, for the author; empty for limits and the end of the kernel."""


class CallFollower(Protocol):
    """Is notified of a call's progress through its states; raises nothing."""

    def note_change(self) -> None:
        """A call now runs or waits; called on the thread where that happens."""

    def end(self, call: "ActiveCall", result: Result) -> Callable[[], None]:
        """The call has ended; returns a function to be called once the client has the result."""


@dataclass(eq=False)
class ActiveCall(Call):
    """A call and its runtime state; guarded by the queue's lock."""

    reply: Callable[[Result], None] = field(kw_only=True, repr=False)
    """Receives the result; called once, on any thread."""
    lock: threading.Lock = field(kw_only=True, default_factory=threading.Lock, repr=False)
    """Shared by all calls of the notebook."""
    client: Client = field(kw_only=True, default=NO_CLIENT, repr=False)
    """Receives progress, log messages and questions."""
    declared: DeclaredTool | None = field(kw_only=True, default=None, repr=False)
    """The tool at the call's arrival; the call runs the tool as declared when its turn comes."""
    capture: Capture = field(kw_only=True, default_factory=Capture, repr=False)
    """Its printed text and displays."""
    elicitations: Elicitations = field(kw_only=True, default_factory=Elicitations, repr=False)
    """Its questions to the client's user."""
    restart_delay: float = field(kw_only=True, default=0.0, repr=False)
    """Seconds by which the answer is delayed if the user interrupted the call."""
    output_schema: OutputSchema | None = field(default=None, init=False, repr=False)
    """The output schema of the tool that runs."""
    is_started: bool = field(default=False, init=False)
    """Whether it was handed to its runner."""
    has_run: bool = field(default=False, init=False)
    """Whether the tool's function started: the arguments were valid, and no stop came first."""
    interrupt: Callable[[], object] | None = field(default=None, init=False, repr=False)
    """Asks its code to stop, from any thread; None while no code runs."""
    stop_request: StopRequest | None = field(default=None, init=False, repr=False)
    """The first request to stop it."""
    is_interrupted: bool = field(default=False, init=False)
    """Whether the user asked it to stop."""
    timers: list[threading.Timer] = field(default_factory=list, init=False, repr=False)
    """Cancelled when its code has ended."""

    number: int = field(default=0, init=False)
    """Its number in this kernel, from 1; 0 before the log has seen it."""
    follower: CallFollower | None = field(default=None, init=False, repr=False)
    """Is notified of its changes."""
    target: DeclaredTool | None = field(default=None, init=False, repr=False)
    """The tool that runs, or would run now."""
    shown_arguments: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """The arguments without secrets; all are masked if the tool is unknown."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shown_arguments = dict.fromkeys(self.arguments, MASK)
        if self.declared is not None:
            self.set_target(self.declared)

    @property
    def kind(self) -> messages.Kind:
        """What it was to call: a tool, or the function of a prompt or a resource."""
        return "tool" if self.declared is None else self.declared.info.kind

    # -- its state ---------------------------------------------------------------------------------

    def begin(self, interrupt: Callable[[], object]) -> bool:
        """Begin to run in the current context, unless the call was answered while it waited.

        Args:
            interrupt: Asks its code to stop.

        Returns:
            Whether it runs now.
        """
        with self.lock:
            if self.has_ended:
                return False
            self.move(CallState.RUNNING)
            self.interrupt = interrupt
        self._tell_move()
        return True

    def set_interrupt(self, interrupt: Callable[[], object]) -> None:
        """Replace the function that asks its code to stop."""
        with self.lock:
            self.interrupt = interrupt

    def wait_for(self, whom: str) -> None:
        """Change the state to waiting, or what it waits for."""
        with self.lock:
            if self.state is CallState.WAITING:
                self.waits_for = whom
            if self.state is not CallState.RUNNING:
                return
            self.waits_for = whom
            self.move(CallState.WAITING)
        self._tell_move()

    def resume(self) -> None:
        """Change the state back to running."""
        with self.lock:
            if self.state is not CallState.WAITING:
                return
            self.move(CallState.RUNNING)
        self._tell_move()

    def _tell_move(self) -> None:
        if self.follower is not None:
            self.follower.note_change()

    def request_stop(self, request: StopRequest) -> Callable[[], object] | None:
        """Note that the call has to stop.

        Args:
            request: The reason.

        Returns:
            The function that asks its code to stop; None if it has ended or is stopping already.
        """
        with self.lock:
            if self.has_ended or self.stop_request is not None:
                return None
            self.stop_request = request
            return self.interrupt

    # -- its answer --------------------------------------------------------------------------------

    def answer(self, state: CallState, result: Result) -> None:
        """End the call with a result; does nothing if it was answered.

        Args:
            state: The state that it ends in.
            result: For the client.
        """
        with self.lock:
            if self.has_ended:
                return
            self.move(state)
        self.hand_out(result)

    def hand_out(self, result: Result) -> None:
        """Send the result to the caller; to be called once, when the call ends.

        The follower gets an error with all of its details.
        """
        finish = None
        try:
            if result.is_error:
                self.details = find_details(result)
            if self.follower is not None:
                finish = self.follower.end(self, reveal_details(result))
        except Exception:
            logger.exception("the end of a call of %r is not in the log", self.tool)
        if self.is_interrupted and self.restart_delay:
            timer = threading.Timer(self.restart_delay, self._send, (result,))
            timer.daemon, timer.name = True, "mcp-notebook-answer"
            timer.start()
        else:
            self._send(result)
        if finish is not None:
            finish()

    def _send(self, result: Result) -> None:
        # Dropped, because the callback and the call refer to each other.
        reply, self.reply = self.reply, _drop_result
        try:
            reply(result)
        except RuntimeError:
            # The endpoint's loop is closed: the extension is being unloaded.
            logger.debug("the result of %s is not needed", self.tool)

    # -- what its code sees ------------------------------------------------------------------------

    def make_context(self) -> Context:
        """Return the `Context` for the tool's function."""
        return Context(
            self.tool,
            report=self.capture.report,
            sees_progress=self.client.sees_progress,
            send_log=self.capture.log,
            stopped=self.get_stop_reason,
            elicitations=self.elicitations,
        )

    def set_target(self, tool: DeclaredTool) -> None:
        """Set the tool, whose secrets are masked wherever the call is shown.

        Args:
            tool: The tool to run.
        """
        if self.target is None:
            self.shown_arguments = self.arguments
        self.target = tool
        if tool.takes_secrets:
            schema = tool.schema.input_schema
            self.shown_arguments = redact_arguments(schema, self.shown_arguments)
            self.capture.secrets = list_secrets(schema, self.arguments)

    @property
    def error_style(self) -> ErrorStyle:
        """How much of an error of its code the caller gets; the author gets everything."""
        if self.client.program is None:
            return ErrorStyle()
        tool = self.target or self.declared
        chosen = None if tool is None else tool.options.errors
        masked = _MASKED.format(self.kind, self.tool, self.number)
        return ErrorStyle(chosen or self.client.errors, masked)

    def get_stop_reason(self) -> str | None:
        """Return why the call has to stop; None if it may continue."""
        return None if self.stop_request is None else str(self.stop_request.error)

    def find_cause(self, error: BaseException, *, by_user: bool) -> BaseException:
        """Return the error behind an exception: an interrupt stands for the request to stop.

        Args:
            error: The exception that the call's code raised.
            by_user: Whether the user pressed "Interrupt" while it ran.
        """
        if not isinstance(error, KeyboardInterrupt | asyncio.CancelledError | Cancelled):
            return error
        with self.lock:
            if self.stop_request is None and by_user:
                self.is_interrupted = True
                self.stop_request = StopRequest(
                    CallState.CANCELLED, Cancelled(INTERRUPTED), BY_INTERRUPT
                )
            request = self.stop_request
        return error if request is None else request.error


def _drop_result(_result: Result) -> None:
    """Do nothing: the call has been answered."""
