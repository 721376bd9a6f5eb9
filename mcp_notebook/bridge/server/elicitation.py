"""Asks the client's user what a running tool wants to know, in the way of the client's era.

Runs in the bridge, on its event loop; with `bridge.server.server` and `bridge.transports.http` the
door to the MCP SDK. Up to 2025-11-25 the server sends the client a request of its own while the
call runs. At 2026-07-28 the call is answered with its open questions (``InputRequiredResult``) and
parked; the client sends it again with the answers, as often as there are questions. Answers that
come with the first request already are used when the tool asks for them, by the questions' keys.
"""

import logging
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp_notebook.bridge.kernels.running_call import Listener, RunningCall
from mcp_notebook.bridge.server.parked_calls import ANSWER_LIMIT, NOBODY_ANSWERED, ParkedCalls
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

_NOT_DECLARED = "The client cannot be asked: it has not declared MCP's elicitation in this request."


def can_elicit(ctx: ServerRequestContext[Any]) -> bool:
    """Tell whether the client of this request lets its user fill in forms."""
    capabilities = ctx.session.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False  # none declared, or web pages only
    return ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS or ctx.session.can_send_request


class Asking:
    """Follows calls that may ask; one for a bridge."""

    def __init__(self) -> None:
        self._parked = ParkedCalls()

    def close(self) -> None:
        """Cancel the calls that wait for their client to come back."""
        self._parked.close()

    def resumed(self, params: types.CallToolRequestParams) -> RunningCall | None:
        """Return the call that a request goes on with, None if it is a new one.

        Raises:
            UnknownState: The state that the request has is none of ours.
        """
        if params.request_state is None:
            return None
        return self._parked.take(params.request_state, params.name, params.arguments or {})

    async def follow(
        self,
        ctx: ServerRequestContext[Any],
        params: types.CallToolRequestParams,
        call: RunningCall,
        listener: Listener,
    ) -> Result | types.InputRequiredResult:
        """Follow a call to its result, or to questions that the client has to bring to its user.

        Raises:
            KernelGone: The kernel died, or left, before it answered.
            MCPError: The tool cannot do without a capability that the client has not declared.
        """
        with call.cancelled_with_block():
            if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
                return await _follow_and_ask(ctx, call, listener)
            result = await self._follow_or_park(ctx, params, call, listener)
        if isinstance(result, Result) and call.lacks is not None:
            text = next((block.text for block in result.content if isinstance(block, Text)), "")
            required: dict[str, Any] = {"requiredCapabilities": {call.lacks: {}}}
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, text, required)
        return result

    async def _follow_or_park(
        self,
        ctx: ServerRequestContext[Any],
        params: types.CallToolRequestParams,
        call: RunningCall,
        listener: Listener,
    ) -> Result | types.InputRequiredResult:
        given = dict(params.input_responses or {})
        while (result := await call.follow(listener)) is None:
            for question in tuple(call.questions.values()):
                if call.shown.get(question.key, question.question) != question.question:
                    # Asked under the key of one that was withdrawn meanwhile: what the user has
                    # said to that one is no answer to this one.
                    continue
                response = given.pop(question.key, None)
                if isinstance(response, types.ElicitResult):
                    call.answer(_answer(question, response))
            if not call.questions:
                continue
            try:
                if not can_elicit(ctx):  # each request declares anew
                    raise CallError(_NOT_DECLARED)  # noqa: TRY301
                call.shown = {item.key: item.question for item in call.questions.values()}
                state = self._parked.park(call, params.name, params.arguments or {})
            except CallError as error:
                for question in tuple(call.questions.values()):
                    call.answer(_no_answer(question, str(error)))
            else:
                requests: types.InputRequests = {
                    question.key: types.ElicitRequest(params=_form(question))
                    for question in call.questions.values()
                }
                return types.InputRequiredResult(input_requests=requests, request_state=state)
        return result


async def _follow_and_ask(
    ctx: ServerRequestContext[Any], call: RunningCall, listener: Listener
) -> Result:
    """Follow a call to its result, and ask what it asks meanwhile."""
    result = await call.follow(listener)
    if result is not None:
        return result  # most calls ask nothing: they need no tasks
    asked: dict[int, anyio.CancelScope] = {}
    failure: CallError | None = None

    async def ask(question: messages.Ask, scope: anyio.CancelScope) -> None:
        with scope:
            call.answer(await _ask(ctx, question))

    # What leaves a task group comes in a group, so that a failure is carried out of it by hand.
    async with anyio.create_task_group() as tasks:
        try:
            while (result := await call.follow(listener, asked=asked)) is None:
                for number in asked.keys() - call.questions.keys():  # answered or withdrawn
                    asked.pop(number).cancel()
                for number in call.questions.keys() - asked.keys():
                    asked[number] = anyio.CancelScope()
                    tasks.start_soon(ask, call.questions[number], asked[number])
        except CallError as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    assert result is not None
    return result


async def _ask(ctx: ServerRequestContext[Any], question: messages.Ask) -> messages.Answer:
    """Send the client a request, and return its answer, or why there is none."""
    form = _form(question)
    try:
        with anyio.fail_after(ANSWER_LIMIT):
            said = await ctx.session.elicit_form(
                form.message, form.requested_schema, ctx.request_id
            )
    except TimeoutError:
        return _no_answer(question, NOBODY_ANSWERED)
    except MCPError as error:
        return _no_answer(question, f"The client could not ask its user: {error}")
    except Exception as error:
        logger.debug("a question could not be asked", exc_info=True)
        return _no_answer(
            question, f"The client's answer could not be read: {type(error).__name__}."
        )
    return _answer(question, said)


def _form(question: messages.Ask) -> types.ElicitRequestFormParams:
    return types.ElicitRequestFormParams(message=question.message, requested_schema=question.form)


def _answer(question: messages.Ask, said: types.ElicitResult) -> messages.Answer:
    content = {} if said.content is None else dict(said.content)
    return messages.Answer(
        id=question.id, question=question.question, action=said.action, content=content
    )


def _no_answer(question: messages.Ask, reason: str) -> messages.Answer:
    return messages.Answer(id=question.id, question=question.question, error=reason)
