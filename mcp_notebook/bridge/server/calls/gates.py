"""A call that is being started, and the gates that it passes: each admits or refuses it.

Runs on the bridge's event loop. `server` orders the gates; the gate that asks for consent has its
own room. The kernel checks the types of the arguments.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.caller_limits import RateLimits, Shares
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import Listener
from mcp_notebook.bridge.server.own_tools import meta_tools
from mcp_notebook.bridge.server.own_tools.tool_search import ToolSearch
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.tasks.tasks import refuse_undeclared
from mcp_notebook.content import Result
from mcp_notebook.errors import CallError, InvalidArguments, UnknownTool
from mcp_notebook.protocol.elicitation import InputRequired
from mcp_notebook.protocol.errors import refuse_capabilities
from mcp_notebook.settings.limits import Limits
from mcp_notebook.wire import messages

OtherAnswer: TypeAlias = (
    "Result | InputRequired | meta_tools.RequestedResult | meta_tools.RequestedPage"
)
"""What a client gets instead of a call: the bridge's own answer, a question, or another result that
the client has requested."""
MAX_VALUES = 1_000_000
"""Maximum number of values and names in the arguments of a call, at all levels."""
_LACKING = (
    "The tool {tool!r} was not called: it requires the client capability {capabilities}, which "
    "this client has not declared. Use a client that supports it."
)
_IS_STOPPED = (
    "The bridge has been stopped, and the call was not started. Connect again when it is back."
)


class CallParams(Struct, frozen=True):
    """The parameters of a ``tools/call`` or ``prompts/get``."""

    name: str
    """The tool's name in the client's request."""
    arguments: dict[str, Any] | None = None
    input_responses: Mapping[str, Any] | None = None
    """The user's answers to questions of the same call, by key, as the client sent them."""
    request_state: str | None = None
    """The state that came with those questions."""
    kind: messages.Kind = "tool"
    """What the client requests."""


class ToolCall(Struct, eq=False):
    """A call that is being started; its gates fill in the fields that have defaults."""

    request: ClientRequest
    """The client's request."""
    params: CallParams
    """Its parameters."""
    arguments: dict[str, Any]
    """The tool's arguments."""
    listener: Listener
    """Takes what the call sends besides its result."""
    found: CatalogEntry | None = None
    """The tool, once it is found."""
    notebook: CatalogEntry | None = None
    """The notebook that the call runs, if that is what it is for; the tool is `meta_tools.RUN`."""
    allowed_code: str | None = None
    """The digest of the code that a person has allowed to run; None: nobody has to be asked."""
    task_owner: str | None = None
    """Whose task the call becomes at once; None if it does not."""

    @property
    def caller(self) -> Caller:
        """The caller."""
        return self.request.caller

    @property
    def entry(self) -> CatalogEntry:
        """The tool; only for gates after `ToolGate`."""
        assert self.found is not None
        return self.found


def identify_request(*parts: Any, arguments: dict[str, Any]) -> str:
    """Return a hash of a request.

    Args:
        parts: The caller, the tool, and whatever else identifies the request.
        arguments: The call's arguments.
    """
    text = json.dumps([parts, arguments], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Gate(Protocol):
    """A check that can refuse a call."""

    async def admit(self, call: ToolCall) -> OtherAnswer | None:
        """Return None to admit the call, or what its client gets instead.

        Raises:
            CallError: The call is refused.
            ProtocolError: The request is invalid.
        """


class Gates:
    """All gates of one bridge.

    Args:
        always: The gates of every call, in order. One of them finds the tool.
        choose_more: Returns the gates that calls of a tool pass after these.
    """

    def __init__(
        self, always: Sequence[Gate], choose_more: Callable[[messages.ToolInfo], Sequence[Gate]]
    ) -> None:
        self._always = always
        self._choose_more = choose_more

    async def admit(self, call: ToolCall) -> OtherAnswer | None:
        """Send a call through the gates; see `Gate.admit`."""
        for gate in self._always:
            if (answer := await gate.admit(call)) is not None:
                return answer
        for gate in self._choose_more(call.entry.tool):
            if (answer := await gate.admit(call)) is not None:
                return answer
        return None


class RateGate:
    """Limits the calls per minute.

    Args:
        limits: The numbers of calls.
    """

    def __init__(self, limits: Limits) -> None:
        self._rates = RateLimits("calls", per_caller=limits.max_caller_calls_per_minute)

    async def admit(self, call: ToolCall) -> None:
        """Count the call."""
        if (excess := self._rates.take(call.caller)) is not None:
            raise CallError(excess.reason)


@dataclass(frozen=True)
class ToolGate:
    """Finds the tool, and checks that the caller may call it."""

    tools: PermittedTools
    """The tools, as callers see them."""
    ready: Callable[[], Awaitable[None]]
    """Waits until the first tools can be expected, if they need time to appear."""
    search: ToolSearch
    """Searches the tools."""
    own: frozenset[str]
    """The names of the bridge's own tools."""
    no_tools: str
    """The meta-tools' text for an empty list of tools."""

    def is_own(self, name: str) -> bool:
        """Return whether a tool of this name is the bridge's own."""
        return name in self.own

    async def admit(self, call: ToolCall) -> OtherAnswer | None:
        """Find the tool, or answer a call of one of the bridge's own."""
        if call.params.kind != "tool" or not self.is_own(call.params.name):
            call.found = await self._find(call)
            return None
        await self.ready()
        answer = meta_tools.answer(
            call.params.name,
            call.arguments,
            self.tools,
            call.caller,
            search=self.search,
            no_tools=self.no_tools,
        )
        if isinstance(answer, meta_tools.RequestedRun):
            call.notebook, call.found = answer.entry, meta_tools.make_run(answer.entry)
            call.arguments = {"name": answer.entry.name}
            return None
        if not isinstance(answer, meta_tools.RequestedCall):
            return answer
        call.found, call.arguments = answer.entry, answer.arguments
        return None

    async def _find(self, call: ToolCall) -> CatalogEntry:
        caller, name, kind = call.caller, call.params.name, call.params.kind
        try:
            return self.tools.find(caller, name, kind)
        except UnknownTool:
            pass
        await self.ready()  # a client may know the tool from an earlier session
        return self.tools.find(caller, name, kind)


@dataclass(frozen=True)
class StartGate:
    """Starts the tool's kernel, or waits for it: its last tools are listed before it has started.

    The tool has been found, so the caller may call it: nobody starts what he has no right to call.
    A call whose purpose is to run a notebook has further gates to pass before it does.
    """

    tools: PermittedTools
    """The tools, as callers see them."""
    links: Links
    """The links to the kernels."""

    async def admit(self, call: ToolCall) -> None:
        """Wait for the kernel, and find the tool again, which may have changed."""
        if call.notebook is not None:
            return
        entry = call.entry
        if await self.links.wait_for_kernel(
            entry, call.listener, errors=call.caller.errors, guest=call.caller.guest
        ):
            call.found = self.tools.find(call.caller, entry.long_name, entry.tool.kind)


class CapabilityGate:
    """Refuses clients that have not declared the capabilities that the tool requires."""

    async def admit(self, call: ToolCall) -> None:
        """Compare the tool's requirements with the client's capabilities."""
        lacking = [name for name in call.entry.tool.requires if not _has(call.request, name)]
        if not lacking:
            return
        text = _LACKING.format(
            tool=call.entry.name, capabilities=" and ".join(f"`{name}`" for name in lacking)
        )
        if call.request.is_handshake:  # these versions have no error for it
            raise CallError(text)
        extensions: dict[str, Any] = {name: {} for name in lacking if "/" in name}
        capabilities: dict[str, Any] = {name: {} for name in lacking if "/" not in name}
        if extensions:
            capabilities["extensions"] = extensions
        raise refuse_capabilities(text, capabilities)


def _has(request: ClientRequest, capability: str) -> bool:
    """Return whether a client has declared a capability, and can use it now."""
    if capability == "elicitation":
        return request.can_elicit
    return capability in request.profile.capabilities


class TaskGate:
    """Makes the call a task at once, for tools that allow or require that."""

    async def admit(self, call: ToolCall) -> None:
        """Note the task's owner if the client can follow it.

        Raises:
            ProtocolError: The tool is only for clients that can.
        """
        if call.request.profile.can_follow_tasks:
            call.task_owner = call.caller.owns
        elif call.entry.tool.task == "required":
            raise refuse_undeclared(f"The tool {call.entry.tool.name!r}")


@dataclass(frozen=True)
class SizeGate:
    """Limits the depth and the number of values in the arguments.

    Parsed, ``[[],[],...]`` takes 25 times the memory of its text, and blocks the kernel noticeably,
    so arguments are measured before they are sent. An empty array or object counts as two values.
    """

    deepest: int = 100
    """The most levels of arrays and objects."""
    most: int = MAX_VALUES
    """The most values and names."""

    async def admit(self, call: ToolCall) -> None:
        """Measure the arguments."""
        arguments = call.arguments
        deepest, most = self.deepest, self.most
        depth, count = _measure(arguments, deepest, most)
        if depth > deepest:
            raise InvalidArguments(
                "The arguments are nested too deeply: at most "
                f"{deepest:,} levels of arrays and objects are accepted."
            )
        if count > most:
            raise InvalidArguments(
                f"The arguments have too many values: at most {most:,} values and names are "
                "accepted in one call. Send less at once."
            )


def _measure(arguments: dict[str, Any], deepest: int, most: int) -> tuple[int, int]:
    """Return depth and number of the values; stops counting at a limit."""
    depth = count = 0
    level: list[Any] = [arguments]
    while level and depth <= deepest and count <= most:
        depth += 1
        deeper: list[Any] = []
        for container in level:
            if isinstance(container, dict):
                count += max(2 * len(container), 1)
                values: Any = container.values()
            else:
                count += max(len(container), 1)
                values = container
            deeper += [value for value in values if isinstance(value, dict | list)]
        level = deeper
    return depth, count


class Room:
    """Limits the calls that run at a time; admits none once the bridge is stopped.

    Args:
        limits: The numbers of calls.
    """

    def __init__(self, limits: Limits) -> None:
        self._running = Shares("running calls", per_caller=limits.max_caller_calls)
        self._is_closed = False

    async def admit(self, call: ToolCall) -> None:
        """Check that there is room for the call."""
        if self._is_closed:
            raise CallError(_IS_STOPPED)
        if (lack := self._running.explain_lack(call.caller)) is not None:
            raise CallError(lack)

    def enter(self, caller: Caller) -> None:
        """Note that a call runs."""
        self._running.add(caller)

    def leave(self, caller: Caller) -> None:
        """Note that it has ended."""
        self._running.remove(caller)

    def close(self) -> None:
        """Admit no more calls."""
        self._is_closed = True
