"""A call that is being started, and the gates that it passes: each admits or refuses it.

Runs on the bridge's event loop. Consent has its own room. The kernel checks the types of the
arguments.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeAlias

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
MAX_DEPTH = 100
"""Maximum levels of arrays and objects in the arguments of a call."""
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
        """The tool, once it is found."""
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


class Gates:
    """What a call passes before it starts: each step admits or refuses it.

    Args:
        tools: The tools, as callers see them.
        links: The links to the kernels.
        ready: Waits until the first tools can be expected, if they need time to appear.
        own: The names of the bridge's own tools.
        ask_consent: Asks a person, if the tool needs that; returns the question for the client.
        limits: How many calls a caller may make.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what the steps need
        self,
        tools: PermittedTools,
        links: Links,
        ready: Callable[[], Awaitable[None]],
        own: Collection[str],
        ask_consent: Callable[[ToolCall], Awaitable[InputRequired | None]],
        limits: Limits,
    ) -> None:
        self._tools = tools
        self._links = links
        self._ready = ready
        self._own = own
        self._search = ToolSearch(tools)
        self._ask_consent = ask_consent
        self._rates = RateLimits("calls", per_caller=limits.max_caller_calls_per_minute)
        self._running = Shares("running calls", per_caller=limits.max_caller_calls)
        self._is_closed = False

    async def admit(self, call: ToolCall) -> OtherAnswer | None:
        """Return None to admit a call, or what its client gets instead.

        Raises:
            CallError: The call is refused.
            ProtocolError: The request is invalid.
        """
        # 1. Its caller has not made too many in a minute.
        if (excess := self._rates.take(call.caller)) is not None:
            raise CallError(excess.reason)
        # 2. The caller may call the tool. The bridge's own tools may have their answer here.
        if call.params.kind != "tool" or call.params.name not in self._own:
            call.found = await self._find(call)
        elif (answer := await self._answer_own(call)) is not None:
            return answer
        # 3. The kernel runs. A call that runs a notebook does so at the end.
        if call.notebook is None:
            await self.wait_for_kernel(call)
        # 4. Arguments and calls are within their limits.
        check_size(call.arguments)
        self._check_room(call.caller)
        # 5. The client has what the tool requires.
        _check_capabilities(call)
        _choose_task(call)
        # 6. A person has agreed. There must still be room then.
        if (question := await self._ask_consent(call)) is not None:
            return question
        self._check_room(call.caller)
        return None

    async def _find(self, call: ToolCall) -> CatalogEntry:
        caller, name, kind = call.caller, call.params.name, call.params.kind
        try:
            return self._tools.find(caller, name, kind)
        except UnknownTool:
            pass
        await self._ready()  # a client may know the tool from an earlier session
        return self._tools.find(caller, name, kind)

    async def _answer_own(self, call: ToolCall) -> OtherAnswer | None:
        """Return the answer of one of the bridge's own tools; None if it calls another tool."""
        await self._ready()
        answer = meta_tools.answer(
            call.params.name,
            call.arguments,
            self._tools,
            call.caller,
            search=self._search,
        )
        if isinstance(answer, meta_tools.RequestedRun):
            call.notebook, call.found = answer.entry, meta_tools.make_run(answer.entry)
            call.arguments = {"name": answer.entry.name}
            return None
        if not isinstance(answer, meta_tools.RequestedCall):
            return answer
        call.found, call.arguments = answer.entry, answer.arguments
        return None

    async def wait_for_kernel(self, call: ToolCall) -> None:
        """Start the tool's kernel, or wait for it: its last tools are listed before it has started.

        The tool is found again then, as it may have changed.
        """
        entry = call.entry
        if await self._links.wait_for_kernel(
            entry, call.listener, errors=call.caller.errors, guest=call.caller.guest
        ):
            call.found = self._tools.find(call.caller, entry.long_name, entry.tool.kind)

    # -- the calls that run ------------------------------------------------------------------------

    def _check_room(self, caller: Caller) -> None:
        if self._is_closed:
            raise CallError(_IS_STOPPED)
        if (lack := self._running.explain_lack(caller)) is not None:
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


def _check_capabilities(call: ToolCall) -> None:
    """Refuse a client that has not declared the capabilities that the tool requires."""
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


def _choose_task(call: ToolCall) -> None:
    """Make the call a task at once, if the tool allows or requires that and the client can follow.

    Raises:
        ProtocolError: The tool is only for clients that can.
    """
    tool = call.entry.tool
    if tool.kind != "tool" or tool.task is None:
        return
    if call.request.profile.can_follow_tasks:
        call.task_owner = call.caller.owns
    elif tool.task == "required":
        raise refuse_undeclared(f"The tool {call.entry.tool.name!r}")


def check_size(
    arguments: dict[str, Any], *, deepest: int = MAX_DEPTH, most: int = MAX_VALUES
) -> None:
    """Check the depth and the number of values of a call's arguments.

    Parsed, ``[[],[],...]`` takes 25 times the memory of its text, and blocks the kernel noticeably,
    so arguments are measured before they are sent. An empty array or object counts as two values.

    Raises:
        InvalidArguments: They are too deep, or too many.
    """
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
