"""Calls of tools and prompts: from a client's request to its result.

Runs on the bridge's event loop. A call of a tool that fails in any way is a result with
``isError``; only an invalid request is answered with a protocol error. Prompts have no such
results: their failures are protocol errors.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import anyio.to_thread

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.kernels.running_call import BecameTask, Listener, RunningCall
from mcp_notebook.bridge.server.calls.call_starter import CallStarter
from mcp_notebook.bridge.server.calls.gates import CallParams, ToolCall
from mcp_notebook.bridge.server.calls.late_results import LateResults
from mcp_notebook.bridge.server.calls.tool_questions import ToolQuestions
from mcp_notebook.bridge.server.forms.accommodations import (
    ResultAdapter,
)
from mcp_notebook.bridge.server.forms.result_forms import (
    AnswerT_co,
    MakeAnswer,
    describe_failure,
    replace_surrogates,
)
from mcp_notebook.bridge.server.listing.change_notices import ChangeNotices
from mcp_notebook.bridge.server.own_tools.meta_tools import RequestedPage, RequestedResult
from mcp_notebook.bridge.server.resources.resources import ResourceRequests, make_page
from mcp_notebook.bridge.server.sessions.client_profile import LOG_LEVELS
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.tasks.forms import TaskForm
from mcp_notebook.bridge.server.tasks.tasks import Tasks
from mcp_notebook.content import Resource, Result, Text
from mcp_notebook.errors import (
    AmbiguousTool,
    CallError,
    InvalidArguments,
    OtherKind,
    ToolGone,
    UnknownState,
    UnknownTool,
)
from mcp_notebook.protocol.elicitation import InputRequired
from mcp_notebook.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_notebook.protocol.versions import LOG_LEVEL_KEY
from mcp_notebook.text.missing_tools import MissingTool
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

PROGRESS_STEP = 1e-6
"""Added to progress that has not increased: MCP requires every progress notification to exceed the
previous one, but a new message or a second loop does not advance it."""
LEGACY_LOG_LEVEL = "info"
"""Log level of clients of the handshake era that have not set one."""
_MAX_DEPARTURES = 5
"""Notebooks that the error for an unknown tool names, of those that have closed recently."""
_DEPARTURES = "Notebooks that have left lately:"


class ToolCalls:
    """The calls of one bridge.

    Args:
        starter: Starts calls.
        results: Adapts results to their clients.
        changes: Notifies the client of changes that its call made, before the result.
        tasks: Lets calls become tasks, and finds the results of tasks.
        resources: Reads resources for the bridge's own tool.
    """

    def __init__(
        self,
        starter: CallStarter,
        *,
        results: ResultAdapter,
        changes: ChangeNotices,
        tasks: Tasks,
        resources: ResourceRequests,
    ) -> None:
        self._starter = starter
        self._results = results
        self._changes = changes
        self._tasks = tasks
        self._resources = resources
        self.find_departed_notebooks: Callable[[], Sequence[MissingTool]] = tuple
        """Returns the notebooks that have closed recently, latest first; called in a thread."""
        self._questions = ToolQuestions()
        self._late_results = LateResults(tasks.finder)
        self._log_levels: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        """The log level of each client, by connection."""

    def close(self) -> None:
        """Cancel the calls that wait for an answer of their client."""
        self._questions.close()

    def set_log_level(self, connection: Any, level: str) -> None:
        """Set the least severe level that a client of the handshake era wants."""
        self._log_levels[connection] = level

    async def answer(
        self,
        request: ClientRequest,
        params: CallParams,
        make_answer: MakeAnswer[AnswerT_co],
    ) -> AnswerT_co | InputRequired | TaskForm:
        """Call a tool, or get a prompt, and return the answer to the request.

        Args:
            request: The request.
            params: Its parameters.
            make_answer: Turns the call's result into the answer.

        Raises:
            ProtocolError: The answer is a protocol error.
        """
        try:
            result = await self._find_result(request, params)
            if not isinstance(result, Result):
                return result
            return make_answer(result, request.protocol_version)
        except ProtocolError:
            raise
        except BecameTask as became:
            if request.profile.can_follow_tasks:
                return self._tasks.announce(request, became.task)
            late = self._late_results.announce(request.caller.owns, became.task)
            return make_answer(late, request.protocol_version)
        except Exception as error:
            logger.exception("a call to %r failed in the bridge", params.name)
            text = (
                f"Internal error in mcp-notebook: {type(error).__name__}: {error}. "
                "The tool may have run, but its result is lost."
            )
            return make_answer(_make_error(text), request.protocol_version)

    async def _find_result(
        self, request: ClientRequest, params: CallParams
    ) -> Result | InputRequired:
        """Return a call's result in a form that its client can use, or questions for its user."""
        caller = request.caller
        try:
            result = await self._run(request, params)
            await self._changes.notify_caller(request)  # perhaps made by this call
            if params.kind == "resource" or not isinstance(result, Result):
                return result
            if params.kind == "prompt":
                return self._results.adapt_messages(request, result)
            return self._results.adapt(request, result)
        except ProtocolError:
            raise
        except UnknownState as error:
            raise ProtocolError(INVALID_PARAMS, str(error)) from None
        except (AmbiguousTool, InvalidArguments, OtherKind, ToolGone, UnknownTool) as error:
            if params.kind != "tool":
                raise ProtocolError(INVALID_PARAMS, str(error)) from None
            if not isinstance(error, UnknownTool):
                return _make_error(str(error))
            # A result, although MCP also allows a protocol error: clients such as OpenAI's Agents
            # SDK do not show the text of a protocol error to the model, which needs it.
            return _make_error(await self._explain_unknown(error, caller))
        except CallError as error:
            return _make_error(str(error))

    async def _explain_unknown(self, error: UnknownTool, caller: Caller) -> str:
        """Return the error and the notebooks that may have had the tool."""
        if not caller.permissions.is_everything:
            return str(error)
        notebooks = await anyio.to_thread.run_sync(self.find_departed_notebooks)
        if not notebooks:
            return str(error)
        return "\n".join([str(error), _DEPARTURES, *map(str, notebooks[:_MAX_DEPARTURES])])

    async def _run(self, request: ClientRequest, params: CallParams) -> Result | InputRequired:
        """Start the call, or resume it, and follow it."""
        listener = self._make_listener(request)
        new = ToolCall(request, params, params.arguments or {}, listener)
        outcome = None if params.request_state is None else self._resume(new)
        match outcome or await self._starter.start(new):
            case RunningCall() as call:
                return await self._follow(new, call)
            case RequestedPage() as page:
                return await self._read_page(request, page)
            case RequestedResult(handle=handle):
                responses = params.input_responses or {}
                return await self._late_results.wait(request, handle, responses, listener)
            case result:
                return result

    async def _follow(self, new: ToolCall, call: RunningCall) -> Result | InputRequired:
        """Follow a call to its result, or to its questions for the client's user."""
        request, params = new.request, new.params
        owner = request.caller.owns
        with self._tasks.watch(call, owner) if call.may_become_task else nullcontext():
            result = await self._questions.follow(request, params, call, new.listener)
        if params.kind != "tool" and call.refuses_arguments and isinstance(result, Result):
            name = params.name if new.found is None else new.found.tool.name
            was = "filled in" if params.kind == "prompt" else "read"
            problem = f"The {params.kind} {name!r} was not {was}. {describe_failure(result)}"
            raise ProtocolError(INVALID_PARAMS, problem)
        return _name_tool(result, new) if isinstance(result, Result) else result

    async def _read_page(
        self, request: ClientRequest, page: RequestedPage
    ) -> Result | InputRequired:
        """Return a part of a resource; the function of a declared one is called."""
        found = self._resources.declared.find(request.caller, page.uri)
        if found is None:
            return await self._resources.read_page(request, page)
        if found.entry.tool.text is not None:
            document = Resource(page.uri, found.entry.tool.text, found.entry.tool.mime_type or "")
            return await anyio.to_thread.run_sync(make_page, document, page)
        params = CallParams(found.entry.long_name, found.arguments, kind="resource")
        try:
            result = await self._run(request, params)
        except ProtocolError as error:  # for a model, which calls a tool
            raise InvalidArguments(error.message) from None
        documents = () if not isinstance(result, Result) else result.content
        if not documents or not isinstance(documents[0], Resource):
            return result  # it failed
        document = replace(documents[0], uri=page.uri)
        return await anyio.to_thread.run_sync(make_page, document, page)

    def _resume(self, call: ToolCall) -> RunningCall | None:
        """Return the call that a request continues; None if it is a new one."""
        try:
            return self._questions.resume(call.caller, call.params)
        except BaseException as error:
            self._starter.note_refusal(call, error)
            raise

    def _make_listener(self, request: ClientRequest) -> Listener:
        """Return a listener for the messages that the client wants while its call runs."""
        wants_progress = request.meta.get("progressToken") is not None
        if request.is_handshake:
            level: str | None = self._log_levels.get(request.connection, LEGACY_LOG_LEVEL)
        else:
            value = request.meta.get(LOG_LEVEL_KEY)
            level = value if isinstance(value, str) else None
        return Listener(
            progress=make_progress_sender(request) if wants_progress else None,
            log=None if level is None else make_log_sender(request),
            log_level=level,
        )


def _name_tool(result: Result, call: ToolCall) -> Result:
    """Tell the live view of a result which tool made it: not all clients do."""
    view, entry = result.meta.get(meta_keys.VIEW), call.found
    if not isinstance(view, dict) or entry is None or call.params.name != entry.name:
        return result
    reads = bool((entry.tool.annotations or {}).get("readOnlyHint"))
    tool = {"name": entry.name, "annotations": {"readOnlyHint": reads}}
    if entry.tool.title is not None:
        tool["title"] = entry.tool.title
    return replace(result, meta={**result.meta, meta_keys.VIEW: {**view, "tool": tool}})


def make_progress_sender(
    request: ClientRequest,
) -> Callable[[messages.Progress], Awaitable[None]]:
    """Return a function that sends the client progress, which always increases."""
    last: float | None = None

    async def send(progress: messages.Progress) -> None:
        nonlocal last
        done, total = _find_finite(progress.progress), _find_finite(progress.total)
        if last is None:
            done = 0.0 if done is None else done
        elif done is None or done <= last:
            done = max(last + PROGRESS_STEP, math.nextafter(last, math.inf))
        if math.isinf(done):  # no number is larger than the last one
            return
        last = done
        message = None if progress.message is None else replace_surrogates(progress.message)
        await request.channel.send_progress(done, total, message)

    return send


def _find_finite(number: float | None) -> float | None:
    """Return a number that JSON has; None for another, or for none."""
    return None if number is None or not math.isfinite(number) else number


def make_log_sender(request: ClientRequest) -> Callable[[messages.Log], Awaitable[None]]:
    """Return a function that sends the client log messages."""

    async def send(log: messages.Log) -> None:
        level = log.level if log.level in LOG_LEVELS else "info"
        await request.channel.send_log(level, log.logger, replace_surrogates(log.text))

    return send


def _make_error(text: str) -> Result:
    """Return the result of a failed call."""
    return Result([Text(replace_surrogates(text))], is_error=True)
