"""Consent: asks a person before a call starts, where its tool or the bridge's policy wants that.

Runs on the bridge's event loop. Up to 2025-11-25 the client is sent a request while its call waits;
at 2026-07-28 the call is answered with the question (``InputRequiredResult``), and the client sends
it again with the answer. The kernel knows nothing of the call until a person has agreed, so that it
is not blocked meanwhile. No answer, or an answer that cannot be read, is a no.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.shares import Shares
from mcp_notebook.bridge.consent.grants import ConsentGrants
from mcp_notebook.bridge.consent.policy import (
    ConsentPolicy,
    Decision,
    check_decision,
    make_denial,
)
from mcp_notebook.bridge.consent.question import make_question, write_question
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import Listener
from mcp_notebook.bridge.protocol.client_request import ClientRequest
from mcp_notebook.bridge.protocol.json_spans import NotJson
from mcp_notebook.bridge.protocol.large_calls import outline_arguments
from mcp_notebook.bridge.questions.elicitation import can_elicit
from mcp_notebook.bridge.questions.request_states import (
    ConsentStates,
    identify_request,
    is_consent_state,
)
from mcp_notebook.errors import CallError
from mcp_notebook.wire import messages

KEY = f"{meta_keys.PREFIX}consent"
"""The key of the question among those that a client is to ask."""
MAX_OPEN = 16
"""Questions that may be open at a time, for all clients together; those of clients that come back
with the answer do not count."""
MAX_CALLER_OPEN = 8
"""Questions of one caller that may be open at a time, so that those of others can be asked."""
TELL_EVERY = 10.0
"""Seconds between two notices of progress; some clients give up after a minute without any."""
ALLOW, ALLOW_SESSION, ALLOW_HOUR, DENY = (
    "Allow once",
    "Allow this tool for the session",
    "Allow this tool for an hour",
    "Deny",
)
_DECISIONS: Mapping[str, Decision] = {
    ALLOW: "once",
    ALLOW_SESSION: "session",
    ALLOW_HOUR: "session",
}
_FIELD = "answer"
_IS_STOPPED = "The bridge was stopped before anybody had answered, and the call was not started."


@dataclass(frozen=True)
class ConsentRequest:
    """A call that needs consent."""

    client: ClientRequest
    """Of whom and how."""
    params: types.CallToolRequestParams
    """What the client has sent; with an answer if it comes back with one."""
    entry: CatalogEntry
    """The tool."""
    arguments: dict[str, Any] | bytes
    """The tool's arguments; if large, as the client's JSON."""
    listener: Listener
    """Hears that the call waits."""

    @property
    def caller(self) -> Caller:
        """Who calls."""
        return self.client.caller

    @property
    def tool_version(self) -> str:
        """What identifies the tool as it is now."""
        return identify_request(
            self.entry.kernel_id, arguments=self.entry.tool.model_dump(mode="json")
        )

    def identify(self) -> str:
        """Return what identifies the request: the same call of the same client has the same."""
        return identify_request(
            self.caller.owns,
            self.client.program,
            self.params.name,
            self.entry.kernel_id,
            self.entry.tool.name,
            arguments=self.arguments,
        )


class Consent:
    """Asks people for their consent; there is one for each bridge.

    Args:
        policy: Which calls need it.
        links: Lead to the notebooks, where people are asked whose client shows no forms.
    """

    def __init__(self, policy: ConsentPolicy, links: Links) -> None:
        self._policy = policy
        self._links = links
        self._grants = ConsentGrants()
        self._states = ConsentStates()
        self._waiting: set[anyio.CancelScope] = set()
        self._open = Shares("open questions", per_caller=MAX_CALLER_OPEN, in_all=MAX_OPEN)
        self._is_closed = False

    def is_needed(self, entry: CatalogEntry) -> bool:
        """Return whether calls of a tool need consent."""
        return self._policy.applies_to(entry.tool)

    def close(self) -> None:
        """Take all open questions back, and answer their calls."""
        self._is_closed = True
        for scope in self._waiting:
            scope.cancel()

    async def ask(self, request: ConsentRequest) -> types.InputRequiredResult | None:
        """Wait until a person has agreed to a call.

        Returns:
            What the client is to come back with; None if the call may start.

        Raises:
            ConsentDenied: Nobody has agreed.
            UnknownState: The client comes back with an answer to no question about this call.
        """
        identity = _identify_grantee(request)
        decision = None
        if is_consent_state(request.params.request_state):
            decision = self._take_answer(request)
        if decision is None:
            if self._grants.has(request.caller.owns, request.tool_version, **identity):
                return None
            if can_elicit(request.client) and not request.client.is_handshake:
                return self._send_back(request, await _write(request))
            decision = await self._ask_now(request)
        check_decision(request.entry.name, decision)
        if decision == "session":
            self._grants.add(request.caller.owns, request.tool_version, **identity)
        return None

    def _send_back(self, request: ConsentRequest, text: str) -> types.InputRequiredResult:
        lifetime = self._policy.timeout
        state = self._states.issue(request.identify(), request.tool_version, lifetime)
        form = types.ElicitRequestFormParams(message=text, requested_schema=_make_form(ALLOW_HOUR))
        return types.InputRequiredResult(
            input_requests={KEY: types.ElicitRequest(params=form)}, request_state=state
        )

    def _take_answer(self, request: ConsentRequest) -> Decision | None:
        """Return what the client comes back with; None if it answers an outdated question.

        Raises:
            ConsentDenied: It comes too late.
            UnknownState: It belongs to no question about this call.
        """
        state = self._states.redeem(request.params.request_state or "", request.identify())
        if state.is_expired:
            raise self._policy.make_timeout(request.entry.name)
        if state.tool != request.tool_version:
            return None
        response = (request.params.input_responses or {}).get(KEY)
        return _read_decision(response) if isinstance(response, types.ElicitResult) else "close"

    async def _ask_now(self, request: ConsentRequest) -> Decision:
        """Ask the client's user, or in the notebook, while the call waits."""
        if can_elicit(request.client):
            text = await _write(request)
            return await self._wait(request, lambda: _elicit(request, text), "")
        link = self._links.find_link(request.entry)
        if not link.requests.can_ask_consent:
            raise make_denial(request.entry.name, _explain_silence(request.entry, link))
        text = await _write(request)
        scope = "until the client disconnects" if request.client.is_handshake else "for an hour"

        def ask() -> Awaitable[Decision]:
            return link.requests.ask_consent(
                request.entry.name,
                text,
                seconds=self._policy.timeout,
                scope=f"further calls of this tool by the same client, {scope}",
            )

        return await self._wait(request, ask, f" in the notebook {request.entry.notebook!r}")

    async def _wait(
        self, request: ConsentRequest, ask: Callable[[], Awaitable[Decision]], where: str
    ) -> Decision:
        """Wait for an answer, for as long as the policy says."""
        caller = request.caller
        lack = self._open.explain_lack(caller)
        if lack is not None:
            raise make_denial(request.entry.name, f"The person cannot be asked. {lack}")
        with self._open.hold(caller), anyio.move_on_after(self._policy.timeout) as scope:
            self._waiting.add(scope)
            try:
                message = f"waiting for a person's consent{where}"
                return await _tell_while(request.listener, message, ask)
            finally:
                self._waiting.discard(scope)
        if self._is_closed:
            raise CallError(_IS_STOPPED)
        raise self._policy.make_timeout(request.entry.name)


async def _tell_while(
    listener: Listener, message: str, ask: Callable[[], Awaitable[Decision]]
) -> Decision:
    """Wait for an answer, and tell the client again and again that its call waits."""
    send = listener.progress
    if send is None:
        return await ask()

    async def tell() -> None:
        while True:
            await send(messages.Progress(id=0, message=message))
            await anyio.sleep(TELL_EVERY)

    outcome: Decision | CallError
    # A task group would wrap the error in a group, so carry it out by hand.
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell)
        try:
            outcome = await ask()
        except CallError as error:
            outcome = error
        tasks.cancel_scope.cancel()
    if isinstance(outcome, CallError):
        raise outcome
    return outcome


def _identify_grantee(request: ConsentRequest) -> dict[str, Any]:
    """Return for whom "for this session" holds: a connection, or the program of a client."""
    if request.client.is_handshake:
        return {"connection": request.client.connection}
    return {"client": request.client.program}


def _explain_silence(entry: CatalogEntry, link: Link) -> str:
    """Say why nobody can be asked, and what to do."""
    why = (
        f"the notebook {entry.notebook!r} is run without a frontend"
        if link.record.owner == "bridge"
        else f"the mcp-notebook of the notebook {entry.notebook!r} is too old to ask there"
    )
    return (
        "Nobody can be asked: the client has not declared MCP's elicitation, so it shows no forms, "
        f"and {why}. Use a client that shows forms, or open the notebook in Jupyter."
    )


async def _write(request: ConsentRequest) -> str:
    """Return the text of the question."""
    sizes: Mapping[str, int] = {}
    arguments = request.arguments
    if isinstance(arguments, bytes):
        try:
            arguments, sizes = await outline_arguments(arguments)
        except NotJson:
            raise make_denial(
                request.entry.name, "The arguments are not a JSON object, or have too many members."
            ) from None
    question = make_question(
        request.entry,
        arguments,
        sizes=sizes,
        caller=request.caller,
        client=request.client.program,
    )
    return write_question(question)


# -- elicitation -----------------------------------------------------------------------------------


def _make_form(for_long: str) -> dict[str, Any]:
    """Return the form of the question; without titles, which older clients write differently."""
    answers = [ALLOW, for_long, DENY]
    field = {"type": "string", "title": "Your answer", "enum": answers, "default": ALLOW}
    return {"type": "object", "properties": {_FIELD: field}, "required": [_FIELD]}


def _read_decision(response: types.ElicitResult) -> Decision:
    if response.action != "accept":
        return "deny" if response.action == "decline" else "close"
    answer = (response.content or {}).get(_FIELD)
    return _DECISIONS.get(answer, "deny") if isinstance(answer, str) else "deny"


async def _elicit(request: ConsentRequest, text: str) -> Decision:
    """Send the client a request, and return its user's decision."""
    form = types.ElicitRequestFormParams(message=text, requested_schema=_make_form(ALLOW_SESSION))
    try:
        return _read_decision(await request.client.channel.ask(form))
    except MCPError as error:
        raise make_denial(
            request.entry.name, f"The client could not ask its user: {error}"
        ) from None
    except Exception as error:  # noqa: BLE001 - an answer may be anything
        raise make_denial(
            request.entry.name, f"The client's answer could not be read: {type(error).__name__}."
        ) from None
