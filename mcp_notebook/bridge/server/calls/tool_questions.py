"""The questions of a running tool to the client's user: MCP's elicitation.

Runs on the bridge's event loop. Up to 2025-11-25 the server sends the client a request while the
call runs. At 2026-07-28 the call is answered with its open questions (``InputRequiredResult``), and
the client repeats it with the answers, until there are no more questions. The tool's function must
not run twice because of that, so the call is parked, and the state that is sent with the questions
is its key. A key cannot be guessed, works once, and only for the same call of the same caller.
Answers in the first request are used when the tool asks questions with their keys.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.caller_limits import Shares
from mcp_notebook.bridge.kernels.running_call import BecameTask, Listener, RunningCall
from mcp_notebook.bridge.server.calls.gates import CallParams
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError, UnknownState
from mcp_notebook.protocol.elicitation import (
    ElicitForm,
    ElicitResult,
    InputRequired,
    read_elicit_result,
)
from mcp_notebook.protocol.errors import ProtocolError, refuse_capabilities
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

CONSENT_STATE = "consent."
"""The prefix of the state of a question about consent; the state of a parked call has no dot."""
ANSWER_LIMIT = 600.0
"""Seconds that a user has to answer; the notebook's main thread may be waiting meanwhile."""
MAX_CALLER_PARKED = 16
"""Maximum number of parked calls of one caller, so that other callers can park theirs."""
MAX_PARKED = 32
"""Maximum number of parked calls. A call whose client never returns also counts towards the
`Settings.max_waiting_calls` of its kernel."""

NO_ANSWER = f"Nobody answered the tool's question within {ANSWER_LIMIT / 60:.0f} minutes."
_NOT_DECLARED = "The client cannot be asked: it has not declared MCP's elicitation in this request."


class ToolQuestions:
    """Follows calls that may ask questions; there is one for each bridge."""

    def __init__(self) -> None:
        self._parked = ParkedCalls()

    def close(self) -> None:
        """Cancel the parked calls."""
        self._parked.close()

    def resume(self, caller: Caller, params: CallParams) -> RunningCall | None:
        """Return the parked call that a caller's request continues, or None if it is a new call.

        Raises:
            UnknownState: No parked call has the request's state.
        """
        if params.request_state is None or params.request_state.startswith(CONSENT_STATE):
            return None
        return self._parked.take(params.request_state, caller, params.name, params.arguments or {})

    async def follow(
        self,
        request: ClientRequest,
        params: CallParams,
        call: RunningCall,
        listener: Listener,
    ) -> Result | InputRequired:
        """Follow a call to its result, or to questions that the client has to show its user.

        Raises:
            KernelGone: The kernel died or disconnected before it answered.
            ProtocolError: The tool needs a capability that the client has not declared.
        """
        with call.cancel_on_error():
            if request.is_handshake:
                return await _follow_and_elicit(request, call, listener)
            result = await self._follow_or_park(request, params, call, listener)
        if isinstance(result, Result) and call.missing_capability is not None:
            text = next((block.text for block in result.content if isinstance(block, Text)), "")
            raise refuse_capabilities(text, {call.missing_capability: {}})
        return result

    async def _follow_or_park(
        self,
        request: ClientRequest,
        params: CallParams,
        call: RunningCall,
        listener: Listener,
    ) -> Result | InputRequired:
        responses = dict(params.input_responses or {})
        while (result := await call.follow(listener)) is None:
            for question in tuple(call.questions.values()):
                if call.question_keys.get(question.key, question.question) != question.question:
                    # The key has been reused: the user's answer is to an earlier question, which
                    # was withdrawn.
                    continue
                response = read_elicit_result(responses.pop(question.key, None))
                if response is not None:
                    call.answer(_make_answer(question, response))
            if not call.questions:
                continue
            try:
                if not request.can_elicit:  # every request declares its capabilities
                    raise CallError(_NOT_DECLARED)  # noqa: TRY301
                call.question_keys = {item.key: item.question for item in call.questions.values()}
                arguments = params.arguments or {}
                state = self._parked.park(call, request.caller, params.name, arguments)
            except CallError as error:
                for question in tuple(call.questions.values()):
                    call.answer(_make_answer(question, str(error)))
            else:
                requests = {
                    question.key: make_form(question) for question in call.questions.values()
                }
                return InputRequired(requests, state)
        return result


async def _follow_and_elicit(
    request: ClientRequest, call: RunningCall, listener: Listener
) -> Result:
    """Follow a call to its result, and ask its questions in the meantime."""
    result = await call.follow(listener)
    if result is not None:
        return result  # most calls ask nothing and need no tasks
    scopes: dict[int, anyio.CancelScope] = {}
    failure: CallError | BecameTask | None = None

    async def ask(question: messages.Ask, scope: anyio.CancelScope) -> None:
        with scope:
            call.answer(_make_answer(question, await ask_user(request, question)))

    # A task group would wrap the error in an exception group, so it is passed out by hand.
    async with anyio.create_task_group() as tasks:
        with call.cancel_on_error():  # before the questions are withdrawn, which may take time
            try:
                while (result := await call.follow(listener, open_questions=scopes)) is None:
                    for number in scopes.keys() - call.questions.keys():  # answered or withdrawn
                        scopes.pop(number).cancel()
                    for number in call.questions.keys() - scopes.keys():
                        scopes[number] = anyio.CancelScope()
                        tasks.start_soon(ask, call.questions[number], scopes[number])
            except (CallError, BecameTask) as error:
                failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    assert result is not None
    return result


async def ask_user(
    request: ClientRequest,
    question: messages.Ask | messages.TaskQuestion,
    *,
    answer_limit: float = ANSWER_LIMIT,
) -> ElicitResult | str:
    """Send the client a request; return its answer, or the reason why there is none.

    Args:
        request: The request of the call.
        question: What the client's user is asked.
        answer_limit: Seconds that the user has to answer.
    """
    if not request.can_elicit:  # the kernel was told so
        return _NOT_DECLARED
    try:
        with anyio.fail_after(answer_limit):
            return await request.channel.ask(make_form(question))
    except TimeoutError:
        return NO_ANSWER
    except ProtocolError as error:
        return f"The client could not ask its user: {error}"
    except Exception as error:
        logger.debug("an elicitation failed", exc_info=True)
        return f"The client's answer could not be read: {type(error).__name__}."


def make_form(question: messages.Ask | messages.TaskQuestion) -> ElicitForm:
    """Return the form of a question."""
    return ElicitForm(question.message, question.form)


def _make_answer(question: messages.Ask, response: ElicitResult | str) -> messages.Answer:
    if isinstance(response, str):
        return messages.Answer(id=question.id, question=question.question, error=response)
    content = {} if response.content is None else dict(response.content)
    return messages.Answer(
        id=question.id, question=question.question, action=response.action, content=content
    )


# -- parked calls ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parked:
    call: RunningCall
    caller: Caller
    request: str
    expiry: asyncio.TimerHandle


class ParkedCalls:
    """The parked calls of one bridge; belongs to its event loop.

    Args:
        answer_limit: Seconds until a parked call is cancelled.
    """

    def __init__(self, *, answer_limit: float = ANSWER_LIMIT) -> None:
        self._answer_limit = answer_limit
        self._parked: dict[str, _Parked] = {}
        self._shares = Shares("open questions", per_caller=MAX_CALLER_PARKED, in_all=MAX_PARKED)

    def __len__(self) -> int:
        return len(self._parked)

    def park(
        self, call: RunningCall, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> str:
        """Park a call, and return the state that retrieves it.

        Args:
            call: The call.
            caller: The caller.
            name: The tool's name in the client's request.
            arguments: The arguments in the client's request.

        Raises:
            CallError: Too many calls are parked.
        """
        lack = self._shares.explain_lack(caller)
        if lack is not None:
            raise CallError(f"The question cannot be asked. {lack}")
        state = secrets.token_urlsafe(32)
        expiry = asyncio.get_running_loop().call_later(self._answer_limit, self._expire, state)
        request = _serialize_request(caller, name, arguments)
        self._parked[state] = _Parked(call, caller, request, expiry)
        self._shares.add(caller)
        return state

    def take(
        self, state: str, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> RunningCall:
        """Return the parked call with this state, which cannot be used again.

        Raises:
            UnknownState: No call has this state, or it belongs to another call or caller.
        """
        parked = self._parked.get(state)
        if parked is None or parked.request != _serialize_request(caller, name, arguments):
            raise UnknownState
        self._remove(state)
        parked.expiry.cancel()
        return parked.call

    def close(self) -> None:
        """Cancel all parked calls."""
        for state in tuple(self._parked):
            parked = self._remove(state)
            parked.expiry.cancel()
            parked.call.cancel("The bridge was stopped.")

    def _expire(self, state: str) -> None:
        self._remove(state).call.cancel(NO_ANSWER)

    def _remove(self, state: str) -> _Parked:
        parked = self._parked.pop(state)
        self._shares.remove(parked.caller)
        return parked


def _serialize_request(caller: Caller, name: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([caller.owns, name, arguments], sort_keys=True)
