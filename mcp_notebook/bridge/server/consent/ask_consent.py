"""Consent: asks a person before a call starts, if its tool or the bridge's policy requires it.

Runs on the bridge's event loop. Up to 2025-11-25 the client is sent a request while its call waits;
at 2026-07-28 the call is answered with the question (``InputRequiredResult``), and the client
repeats it with the answer. The call is sent to the kernel only after a person has agreed, so it
does not block the kernel in the meantime. No answer, or an unreadable one, denies the call.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Any
from weakref import WeakKeyDictionary

import anyio
from msgspec import to_builtins

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access.caller_limits import Shares
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import Listener
from mcp_notebook.bridge.server.calls.gates import ToolCall, identify_request
from mcp_notebook.bridge.server.calls.tool_questions import CONSENT_STATE
from mcp_notebook.bridge.server.consent.answer_states import AnswerStates
from mcp_notebook.bridge.server.consent.policy import (
    ConsentPolicy,
    Decision,
    check_decision,
    make_denial,
)
from mcp_notebook.bridge.server.consent.question_text import (
    Question,
    make_question,
    write_question,
    write_summary,
    write_title,
)
from mcp_notebook.errors import CallError
from mcp_notebook.protocol.elicitation import (
    ElicitForm,
    ElicitResult,
    InputRequired,
    read_elicit_result,
)
from mcp_notebook.protocol.errors import ProtocolError
from mcp_notebook.text.wording import format_seconds
from mcp_notebook.wire import messages

KEY = f"{meta_keys.PREFIX}consent"
"""The key of the question among a call's input requests."""
MAX_GRANTS = 256
"""Maximum number of grants without a connection; the oldest expire."""
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
_IS_STOPPED = "The bridge was stopped before anybody answered, and the call was not started."


class Consent:
    """The gate that asks people for their consent; one per bridge.

    Args:
        policy: Which calls need it, and the limits of its questions.
        links: The links to the notebooks, which ask if the client cannot show forms.
        tools: The tools, as callers see them.
    """

    def __init__(self, policy: ConsentPolicy, links: Links, tools: PermittedTools) -> None:
        self._policy = policy
        self._tools = tools
        self._links = links
        self._grants = Grants()
        self._states = AnswerStates()
        self._waiting: set[anyio.CancelScope] = set()
        self._open = Shares(
            "open questions", per_caller=policy.max_caller_open, in_all=policy.max_open
        )
        self._is_closed = False

    def close(self) -> None:
        """Withdraw all open questions, and answer their calls."""
        self._is_closed = True
        for scope in self._waiting:
            scope.cancel()

    async def ask_if_needed(self, call: ToolCall) -> InputRequired | None:
        """Wait until a person has agreed to a call, if calls of its tool need that.

        Returns:
            The question that the client has to answer first; None if the call may start.

        Raises:
            ConsentDenied: Nobody has agreed.
            UnknownState: The client's answer is not to a question about this call.
        """
        if not self._policy.applies_to(call.entry.tool):
            return None
        question = await self._ask(call)
        offered = call.notebook or call.entry
        listed = self._tools.list_entries(call.caller, offered.tool.kind)
        if question is None and offered not in listed:
            raise make_denial(
                call.entry.name, "The tool was changed while a person was asked. Call it again."
            )
        if call.notebook is not None:
            call.allowed_code = (call.notebook.tool.meta or {}).get(meta_keys.CODE)
        return question

    async def _ask(self, call: ToolCall) -> InputRequired | None:
        """Return the question for the client, or None once a person has agreed."""
        identity = _identify_grantee(call)
        version = _identify_tool(call)
        decision = None
        if (call.params.request_state or "").startswith(CONSENT_STATE):
            decision = self._take_answer(call, version)
        if decision is None:
            if self._grants.has(call.caller.owns, version, **identity):
                return None
            if call.request.can_elicit and not call.request.is_handshake:
                return self._send_back(call, version, _make_question(call))
            decision = await self._ask_now(call)
        check_decision(call.entry.name, decision)
        if decision == "session":
            self._grants.add(call.caller.owns, version, **identity)
        return None

    def _send_back(self, call: ToolCall, version: str, question: Question) -> InputRequired:
        lifetime = self._policy.timeout
        state = self._states.issue(_identify_call(call), version, lifetime)
        form = _make_form(question, ALLOW_HOUR)
        return InputRequired({KEY: form}, state)

    def _take_answer(self, call: ToolCall, version: str) -> Decision | None:
        """Return the answer that the client has sent; None if its question is outdated.

        Raises:
            ConsentDenied: The answer comes too late.
            UnknownState: The answer is not to a question about this call.
        """
        state = self._states.redeem(call.params.request_state or "", _identify_call(call))
        if state.is_expired:
            raise self._policy.make_timeout(call.entry.name)
        if state.tool != version:
            return None
        response = read_elicit_result((call.params.input_responses or {}).get(KEY))
        return "close" if response is None else _read_decision(response)

    async def _ask_now(self, call: ToolCall) -> Decision:
        """Ask the client's user, or ask in the notebook, while the call waits."""
        if call.request.can_elicit:
            form = _make_form(_make_question(call), ALLOW_SESSION)
            return await self._wait(call, lambda: _elicit(call, form), "")
        link = None if call.notebook else self._links.find_link(call.entry)
        if link is None or not link.requests.can_ask_consent:
            raise make_denial(call.entry.name, _explain_silence(call.entry, link))
        text = write_question(_make_question(call))
        session: messages.ConsentSession = "connection" if call.request.is_handshake else "hour"

        def ask() -> Awaitable[Decision]:
            return link.requests.ask_consent(
                call.entry.name,
                text,
                seconds=self._policy.timeout,
                session=session,
            )

        return await self._wait(call, ask, f" in the notebook {call.entry.notebook!r}")

    async def _wait(
        self, call: ToolCall, ask: Callable[[], Awaitable[Decision]], where: str
    ) -> Decision:
        """Wait for an answer until the policy's timeout."""
        caller = call.caller
        lack = self._open.explain_lack(caller)
        if lack is not None:
            raise make_denial(call.entry.name, f"The person cannot be asked. {lack}")
        link = self._links.find_own_link(call.entry)
        with (
            self._open.hold(caller),
            nullcontext() if link is None else link.hold(),
            anyio.move_on_after(self._policy.timeout) as scope,
        ):
            self._waiting.add(scope)
            try:
                message = f"a person is being asked{where} whether the call may run; time to answer"
                return await _tell_while(call.listener, message, self._policy, ask)
            finally:
                self._waiting.discard(scope)
        if self._is_closed:
            raise CallError(_IS_STOPPED)
        raise self._policy.make_timeout(call.entry.name)


class Grants:
    """The tools that people have allowed for a while; used only on the bridge's event loop.

    Up to 2025-11-25 a grant lasts as long as the client's connection. At 2026-07-28 there are no
    sessions: a grant is for a caller and a client's program, and lasts for a time. It ends when the
    tool changes in a way that clients can see, and with `--confirm` at any change.

    Args:
        seconds: How long a grant without a connection lasts.
    """

    def __init__(self, *, seconds: float = 3_600.0) -> None:
        self._seconds = seconds
        self._by_connection: WeakKeyDictionary[Any, set[tuple[str, str]]] = WeakKeyDictionary()
        self._by_client: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        """The expiry of each grant, by caller, tool and program."""

    def add(self, caller: str, tool: str, *, connection: Any = None, client: str = "") -> None:
        """Allow a caller a tool for a while.

        Args:
            caller: The caller: `Caller.owns`.
            tool: Identifies the tool in its present form.
            connection: The client's connection; None if the client has no lasting one.
            client: The client's program, which then stands for the connection.
        """
        if connection is not None:
            self._by_connection.setdefault(connection, set()).add((caller, tool))
            return
        self._by_client[caller, client, tool] = time.monotonic() + self._seconds
        self._by_client.move_to_end((caller, client, tool))
        if len(self._by_client) > MAX_GRANTS:
            self._by_client.popitem(last=False)

    def has(self, caller: str, tool: str, *, connection: Any = None, client: str = "") -> bool:
        """Return whether a caller may call a tool; the arguments are those of `add`."""
        if connection is not None:
            return (caller, tool) in self._by_connection.get(connection, ())
        return time.monotonic() < self._by_client.get((caller, client, tool), 0.0)


async def _tell_while(
    listener: Listener, message: str, policy: ConsentPolicy, ask: Callable[[], Awaitable[Decision]]
) -> Decision:
    """Wait for an answer, and send the client progress in the meantime.

    Args:
        listener: The call's client.
        message: What is being waited for; the time that is left is added.
        policy: The time limit of the wait, for the client, and how often it is told.
        ask: Returns the answer.
    """
    send = listener.progress
    if send is None:
        return await ask()
    end = time.monotonic() + policy.timeout

    async def tell() -> None:
        while True:
            left = format_seconds(max(end - time.monotonic(), 0))
            await send(messages.Progress(id=0, message=f"{message}: {left}"))
            await anyio.sleep(policy.tell_every)

    outcome: Decision | CallError
    # A task group would wrap the error in an exception group.
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


def _identify_call(call: ToolCall) -> str:
    """Return an id of the request: the same for the same call of the same client."""
    return identify_request(
        call.caller.owns,
        call.request.profile.program,
        call.params.name,
        call.entry.kernel_id,
        call.entry.tool.name,
        arguments=call.arguments,
    )


def _identify_tool(call: ToolCall) -> str:
    """Return an id of the tool's present declaration."""
    return identify_request(call.entry.kernel_id, arguments=to_builtins(call.entry.tool))


def _identify_grantee(call: ToolCall) -> dict[str, Any]:
    """Return the owner of a grant for the session: a connection, or a client's program."""
    if call.request.is_handshake:
        return {"connection": call.request.connection}
    return {"client": call.request.profile.program}


def _explain_silence(entry: CatalogEntry, link: Link | None) -> str:
    """Explain why no person can be asked, and what to do; without a link, no kernel runs."""
    why = "does not run" if link is None else "runs without a frontend"
    step = "" if link is None else ", or open the notebook in Jupyter"
    return (
        "Nobody can be asked: the client has not declared MCP's elicitation, so it shows no forms, "
        f"and the notebook {entry.notebook!r} {why}. Use a client that shows forms{step}."
    )


def _make_question(call: ToolCall) -> Question:
    return make_question(
        call.entry, call.arguments, caller=call.caller, client=call.request.profile.program
    )


# -- elicitation -----------------------------------------------------------------------------------


def _make_form(question: Question, for_long: str) -> ElicitForm:
    """Return the form of a question, for clients that show its message and for those that do not.

    VS Code asks with a list that shows only the field's title and description, and selects the
    default, or else the first answer. The answers have no titles: older clients differ.
    """
    field = {
        "type": "string",
        "title": write_title(question),
        "description": write_summary(question),
        "enum": [DENY, ALLOW, for_long],
    }
    schema = {"type": "object", "properties": {_FIELD: field}, "required": [_FIELD]}
    return ElicitForm(write_question(question), schema)


def _read_decision(response: ElicitResult) -> Decision:
    if response.action != "accept":
        return "deny" if response.action == "decline" else "close"
    answer = (response.content or {}).get(_FIELD)
    return _DECISIONS.get(answer, "deny") if isinstance(answer, str) else "deny"


async def _elicit(call: ToolCall, form: ElicitForm) -> Decision:
    """Send the client a request, and return its user's decision."""
    try:
        return _read_decision(await call.request.channel.ask(form))
    except ProtocolError as error:
        raise make_denial(call.entry.name, f"The client could not ask its user: {error}") from None
    except Exception as error:  # noqa: BLE001 - an answer may be anything
        raise make_denial(
            call.entry.name, f"The client's answer could not be read: {type(error).__name__}."
        ) from None
