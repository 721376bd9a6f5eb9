"""Elicitation: asks the client's user what a running tool wants to know.

Runs on the bridge's event loop. Up to 2025-11-25 the server sends the client a request while the
call runs. At 2026-07-28 the call is answered with its open questions (``InputRequiredResult``) and
parked, and the client sends it again with the answers, as often as there are questions. Answers
that already come with the first request are matched by the questions' keys when the tool asks.
"""

import logging
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.kernels.running_call import BecameTask, Listener, RunningCall
from mcp_notebook.bridge.protocol.client_request import ClientRequest
from mcp_notebook.bridge.questions.parked_calls import ANSWER_LIMIT, NO_ANSWER, ParkedCalls
from mcp_notebook.bridge.questions.request_states import is_consent_state
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

_NOT_DECLARED = "The client cannot be asked: it has not declared MCP's elicitation in this request."


def can_elicit(request: ClientRequest) -> bool:
    """Return whether the client of this request can show its user a form."""
    elicitation = None if request.capabilities is None else request.capabilities.elicitation
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False  # none, or web pages only
    return not request.is_handshake or request.channel.can_ask


class Elicitation:
    """Follows calls that may ask questions; there is one for each bridge."""

    def __init__(self) -> None:
        self._parked = ParkedCalls()

    def close(self) -> None:
        """Cancel the parked calls."""
        self._parked.close()

    def resume(self, caller: Caller, params: types.CallToolRequestParams) -> RunningCall | None:
        """Return the parked call that a caller's request continues, or None if it is a new call.

        Raises:
            UnknownState: The request has a state that no parked call has.
        """
        if params.request_state is None or is_consent_state(params.request_state):
            return None
        return self._parked.take(params.request_state, caller, params.name, params.arguments or {})

    async def follow(
        self,
        request: ClientRequest,
        params: types.CallToolRequestParams,
        call: RunningCall,
        listener: Listener,
    ) -> Result | types.InputRequiredResult:
        """Follow a call to its result, or to questions that the client has to show its user.

        Raises:
            KernelGone: The kernel died or left before it answered.
            MCPError: The tool needs a capability that the client has not declared.
        """
        with call.cancel_on_error():
            if request.is_handshake:
                return await _follow_and_elicit(request, call, listener)
            result = await self._follow_or_park(request, params, call, listener)
        if isinstance(result, Result) and call.missing_capability is not None:
            text = next((block.text for block in result.content if isinstance(block, Text)), "")
            required: dict[str, Any] = {"requiredCapabilities": {call.missing_capability: {}}}
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, text, required)
        return result

    async def _follow_or_park(
        self,
        request: ClientRequest,
        params: types.CallToolRequestParams,
        call: RunningCall,
        listener: Listener,
    ) -> Result | types.InputRequiredResult:
        responses = dict(params.input_responses or {})
        while (result := await call.follow(listener)) is None:
            for question in tuple(call.questions.values()):
                if call.question_keys.get(question.key, question.question) != question.question:
                    # The key belonged to a question that has been withdrawn since: the user's
                    # answer is to that one.
                    continue
                response = responses.pop(question.key, None)
                if isinstance(response, types.ElicitResult):
                    call.answer(_make_answer(question, response))
            if not call.questions:
                continue
            try:
                if not can_elicit(request):  # every request declares its capabilities
                    raise CallError(_NOT_DECLARED)  # noqa: TRY301
                call.question_keys = {item.key: item.question for item in call.questions.values()}
                arguments = params.arguments or {}
                state = self._parked.park(call, request.caller, params.name, arguments)
            except CallError as error:
                for question in tuple(call.questions.values()):
                    call.answer(_make_refusal(question, str(error)))
            else:
                requests: types.InputRequests = {
                    question.key: types.ElicitRequest(params=_make_form(question))
                    for question in call.questions.values()
                }
                return types.InputRequiredResult(input_requests=requests, request_state=state)
        return result


async def _follow_and_elicit(
    request: ClientRequest, call: RunningCall, listener: Listener
) -> Result:
    """Follow a call to its result, and ask its questions meanwhile."""
    result = await call.follow(listener)
    if result is not None:
        return result  # most calls ask nothing and need no tasks
    scopes: dict[int, anyio.CancelScope] = {}
    failure: CallError | BecameTask | None = None

    async def ask(question: messages.Ask, scope: anyio.CancelScope) -> None:
        with scope:
            call.answer(await _elicit(request, question))

    # A task group would wrap the failure in a group, so carry it out by hand.
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


async def _elicit(request: ClientRequest, question: messages.Ask) -> messages.Answer:
    """Send the client a request; return its answer, or why there is none."""
    if not can_elicit(request):  # the kernel was told so
        return _make_refusal(question, _NOT_DECLARED)
    try:
        with anyio.fail_after(ANSWER_LIMIT):
            response = await request.channel.ask(_make_form(question))
    except TimeoutError:
        return _make_refusal(question, NO_ANSWER)
    except MCPError as error:
        return _make_refusal(question, f"The client could not ask its user: {error}")
    except Exception as error:
        logger.debug("an elicitation failed", exc_info=True)
        return _make_refusal(
            question, f"The client's answer could not be read: {type(error).__name__}."
        )
    return _make_answer(question, response)


def _make_form(question: messages.Ask) -> types.ElicitRequestFormParams:
    return types.ElicitRequestFormParams(message=question.message, requested_schema=question.form)


def _make_answer(question: messages.Ask, response: types.ElicitResult) -> messages.Answer:
    content = {} if response.content is None else dict(response.content)
    return messages.Answer(
        id=question.id, question=question.question, action=response.action, content=content
    )


def _make_refusal(question: messages.Ask, reason: str) -> messages.Answer:
    return messages.Answer(id=question.id, question=question.question, error=reason)
