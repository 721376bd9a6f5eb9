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

import mcp_types as types

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.caller_limits import RateLimits, Shares
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import Listener
from mcp_notebook.bridge.server.lists import meta_tools
from mcp_notebook.bridge.server.lists.tool_search import ToolSearch
from mcp_notebook.bridge.server.protocol.client_request import ClientRequest
from mcp_notebook.bridge.server.protocol.json_spans import measure_value
from mcp_notebook.bridge.server.protocol.protocol_error import refuse_capabilities
from mcp_notebook.content import Result
from mcp_notebook.errors import CallError, InvalidArguments, UnknownTool
from mcp_notebook.settings.limits import Limits
from mcp_notebook.wire import messages

OtherAnswer: TypeAlias = (
    "Result | types.InputRequiredResult | meta_tools.RequestedResult | meta_tools.RequestedPage"
)
"""What a client gets instead of a call: the bridge's own answer, a question, or another result that
the client has requested."""
MAX_TOOLS = 4_096
"""Tools whose gates are cached; beyond that, the cache starts over."""
_FindKeep: TypeAlias = Callable[[ClientRequest, messages.ToolInfo], messages.Keep | None]
_LACKING = (
    "The tool {tool!r} was not called: it requires the client capability {capabilities}, which "
    "this client has not declared. Use a client that supports it."
)
_IS_STOPPED = (
    "The bridge has been stopped, and the call was not started. Connect again when it is back."
)


@dataclass(frozen=True)
class CallParams:
    """The parameters of a ``tools/call`` or ``prompts/get``."""

    name: str
    """The tool's name in the client's request."""
    arguments: dict[str, Any] | None = None
    input_responses: Mapping[str, Any] | None = None
    """The user's answers to questions of the same call, by key, as the SDK reads them."""
    request_state: str | None = None
    """The state that came with those questions."""
    kind: messages.Kind = "tool"
    """What the client requests."""


@dataclass(eq=False)
class ToolCall:
    """A call that is being started; its gates fill in the fields that have defaults."""

    request: ClientRequest
    """The client's request."""
    params: CallParams
    """Its parameters."""
    arguments: dict[str, Any] | bytes
    """The tool's arguments; if large, as the client's JSON."""
    listener: Listener
    """Takes what the call sends besides its result."""
    found: CatalogEntry | None = None
    """The tool, once it is found."""
    notebook: CatalogEntry | None = None
    """The notebook that the call runs, if that is what it is for; the tool is `meta_tools.RUN`."""
    allowed_code: str | None = None
    """The digest of the code that a person has allowed to run; None: nobody has to be asked."""
    keep: messages.Keep | None = None
    """How the call outlives its client; None if it does not."""

    @property
    def caller(self) -> Caller:
        """The caller."""
        return self.request.caller

    @property
    def entry(self) -> CatalogEntry:
        """The tool; only for gates after `ToolGate`."""
        assert self.found is not None
        return self.found


def identify_request(*parts: Any, arguments: dict[str, Any] | bytes) -> str:
    """Return a hash of a request.

    Args:
        parts: The caller, the tool, and whatever else identifies the request.
        arguments: The call's arguments; if large, as the client's JSON.
    """
    # Large arguments must differ from small ones that contain their hash.
    large = hashlib.sha256(arguments).hexdigest() if isinstance(arguments, bytes) else None
    text = json.dumps([parts, large, None if large else arguments], sort_keys=True)
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
        choose_more: Returns the gates that calls of a tool pass after these; asked once for each
            declaration of the tool.
    """

    def __init__(
        self, always: Sequence[Gate], choose_more: Callable[[messages.ToolInfo], Sequence[Gate]]
    ) -> None:
        self._always = always
        self._choose_more = choose_more
        self._more: dict[str, tuple[messages.ToolInfo, Sequence[Gate]]] = {}
        """The chosen gates, with the declaration that they were chosen for, by served name."""

    async def admit(self, call: ToolCall) -> OtherAnswer | None:
        """Send a call through the gates; see `Gate.admit`."""
        for gate in self._always:
            if (answer := await gate.admit(call)) is not None:
                return answer
        for gate in self._find_more(call.entry):
            if (answer := await gate.admit(call)) is not None:
                return answer
        return None

    def _find_more(self, entry: CatalogEntry) -> Sequence[Gate]:
        known = self._more.get(entry.name)
        if known is None or known[0] is not entry.tool:
            if len(self._more) >= MAX_TOOLS:
                self._more.clear()
            known = self._more[entry.name] = entry.tool, self._choose_more(entry.tool)
        return known[1]


class RateGate:
    """Limits the calls per minute.

    Args:
        limits: The numbers of calls.
    """

    def __init__(self, limits: Limits) -> None:
        self._rates = RateLimits(
            "calls",
            per_caller=limits.max_caller_calls_per_minute,
            in_all=limits.max_calls_per_minute,
        )

    async def admit(self, call: ToolCall) -> None:
        """Count the call."""
        if (excess := self._rates.take(call.caller)) is not None:
            raise CallError(excess.reason)


@dataclass(frozen=True)
class ToolGate:
    """Finds the tool, and checks that the caller may call it."""

    tools: PermittedTools
    """The tools, as callers see them."""
    ready: Callable[[], Awaitable[None]] | None
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
        if self.ready is not None:
            await self.ready()
        answer = await meta_tools.answer(
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
            if self.ready is None:
                raise
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
        if await self.links.wait_for_kernel(entry, call.listener, errors=call.caller.errors):
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
        raise refuse_capabilities(text, {name: {} for name in lacking})


def _has(request: ClientRequest, capability: str) -> bool:
    """Return whether a client has declared a capability; False for those of newer kernels."""
    return capability == "elicitation" and request.can_elicit


@dataclass(frozen=True)
class TaskGate:
    """Decides whether the call can outlive its client; for tools that allow or require that."""

    find_keep: _FindKeep
    """Returns how the call is kept; None if it ends with its client."""

    async def admit(self, call: ToolCall) -> None:
        """Note how the call outlives its client."""
        call.keep = self.find_keep(call.request, call.entry.tool)


@dataclass(frozen=True)
class SizeGate:
    """Limits the depth and the number of values in the arguments.

    Parsed in a kernel, ``[[],[],...]`` takes 25 times the memory of its text, and blocks the kernel
    noticeably, so arguments are measured before they are sent: small ones after parsing, large ones
    as text, in slices between which the loop does other work. An empty array or object counts as
    two values, because that is how it is counted in text.
    """

    limits: Limits
    """`max_argument_depth` and `max_argument_values`."""

    async def admit(self, call: ToolCall) -> None:
        """Measure the arguments."""
        arguments = call.arguments
        deepest, most = self.limits.max_argument_depth, self.limits.max_argument_values
        if isinstance(arguments, bytes):
            depth, count = await measure_value(arguments, enough=most)
        else:
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
        self._running = Shares(
            "running calls", per_caller=limits.max_caller_calls, in_all=limits.max_calls
        )
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
