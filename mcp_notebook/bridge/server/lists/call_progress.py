"""The progress of running calls, for the live views that wait for their results.

Runs on the bridge's event loop. A client may open a view before its call has a result (MCP Apps
sends a view the arguments first). The view then reads `resource_uris.PROGRESS`, and waits there for
news.

*Which call.* No message of MCP Apps names the call to a view for certain. A view says what its
client has told it: the arguments, and in most clients the tool and the id of the request. The
caller's own running calls that fit are the candidates. If there is one, the answer names it for the
next question; if there are several, the view is told how many, and no progress of another call.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import RunningCall
from mcp_notebook.bridge.server.protocol.client_request import ClientRequest
from mcp_notebook.bridge.server.protocol.result_forms import replace_surrogates
from mcp_notebook.errors import KernelGone, ResourceFailed
from mcp_notebook.wire import messages, task_ids

if TYPE_CHECKING:
    import mcp_types as types

WAIT = 10.0
"""Seconds that a view waits for news before it is answered without any."""
MAX_TASKS = 100
"""Tasks whose progress views can see; the oldest are forgotten."""


class _Query(msgspec.Struct, frozen=True):
    """What a view knows of its call."""

    call: str | None = None
    """The call that an earlier answer named; then the rest is not needed."""
    seen: int = 0
    """The news that the view has seen."""
    tool: str | None = None
    id: int | str | None = None
    """The id of the request."""
    arguments: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class _OpenCall:
    key: str
    owner: str
    """See `Caller.owns`."""
    connection: Any
    """See `ClientProfile.connection`."""
    request_id: types.RequestId | None
    tool: str
    """Its name in the request."""
    arguments: dict[str, Any] | bytes
    call: RunningCall
    began: float
    """By the monotonic clock."""


class CallProgress:
    """Knows the running calls of clients that show live views.

    Args:
        links: The links to the kernels, which know how far tasks are.
    """

    def __init__(self, links: Links) -> None:
        self._links = links
        self._calls: dict[str, _OpenCall] = {}
        self._numbers = itertools.count(1)
        self._started = asyncio.Event()
        """Set when a call starts, and replaced then."""

    @contextmanager
    def show(
        self,
        request: ClientRequest,
        tool: str,
        arguments: dict[str, Any] | bytes,
        call: RunningCall,
    ) -> Iterator[None]:
        """Show the progress of a call during the block, and of the task that it becomes.

        Args:
            request: The client's request.
            tool: The tool's name in it.
            arguments: Its arguments.
            call: The call.
        """
        if not request.profile.shows_views:
            yield
            return
        key = str(next(self._numbers))
        self._calls[key] = _OpenCall(
            key,
            request.caller.owns,
            request.connection,
            request.id,
            tool,
            arguments,
            call,
            time.monotonic(),
        )
        started, self._started = self._started, asyncio.Event()
        started.set()
        try:
            yield
        finally:
            if call.task is None:
                del self._calls[key]
            else:
                tasks = [key for key, each in self._calls.items() if each.call.task is not None]
                for old in tasks[:-MAX_TASKS]:
                    del self._calls[old]

    async def answer(self, request: ClientRequest, text: str) -> str:
        """Answer a view's question, as JSON, when there is news or after `WAIT`.

        Args:
            request: The view's request.
            text: What it knows of its call, as JSON.

        Raises:
            ResourceFailed: The text is not such a question.
        """
        try:
            query = msgspec.json.decode(text, type=_Query)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):  # a lone surrogate
            raise ResourceFailed("The question for a call's progress cannot be read.") from None
        answer: dict[str, Any] = {"running": 0}
        with anyio.move_on_after(WAIT):
            while len(found := self._find(request, query)) != 1:
                answer = {"running": len(found)}
                if query.call is not None:
                    break  # it has ended
                await self._started.wait()
            else:
                (call,) = found
                # Whatever is known, should there be no news in time.
                answer = _describe(call, call.call.last_progress, call.call.reports)
                answer = await self._follow(call, query.seen)
        return msgspec.json.encode(answer).decode()

    def _find(self, request: ClientRequest, query: _Query) -> list[_OpenCall]:
        """Return the caller's calls that may be the view's."""
        own = [call for call in self._calls.values() if call.owner == request.caller.owns]
        if query.call is not None:
            return [call for call in own if call.key == query.call]
        found = [
            call
            for call in own
            if query.tool in (None, call.tool)
            and (
                query.arguments is None
                or isinstance(call.arguments, bytes)
                or query.arguments == call.arguments
            )
        ]
        # Programs that share a token may use the same ids, so the connection comes first.
        found = [call for call in found if call.connection is request.connection] or found
        return [call for call in found if call.request_id == query.id] or found

    async def _follow(self, open_call: _OpenCall, seen: int) -> dict[str, Any]:
        """Wait until there is other news of a call than the view has seen."""
        call = open_call.call
        if call.task is None:
            await call.wait_for_report(seen)
        if call.task is not None:
            return await self._follow_task(open_call, call.task, seen)
        if open_call.key not in self._calls:
            return {"running": 0}
        return _describe(open_call, call.last_progress, call.reports)

    async def _follow_task(
        self, open_call: _OpenCall, task: messages.TaskInfo, seen: int
    ) -> dict[str, Any]:
        kernel_id = task_ids.find_kernel_id(task.id)
        link = next((link for link in self._links.open_links if link.record.id == kernel_id), None)
        found = None
        if link is not None:
            with suppress(KernelGone, TimeoutError):
                found = await link.requests.find_task(task.id, open_call.owner, after=seen)
        if found is None or found.info.ends is not None:
            self._calls.pop(open_call.key, None)
            return {"running": 0}
        return _describe(open_call, found.info.latest, found.info.version)


def _describe(call: _OpenCall, progress: messages.Progress | None, reports: int) -> dict[str, Any]:
    news = progress or messages.Progress(id=0)
    return {
        "running": 1,
        "call": call.key,
        "tool": call.tool,
        "seen": reports,
        "seconds": round(time.monotonic() - call.began, 1),
        "progress": news.progress,
        "total": news.total,
        "message": None if news.message is None else replace_surrogates(news.message),
    }
