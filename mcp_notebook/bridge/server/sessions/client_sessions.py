"""A client's session: from its handshake until it leaves, and over stdio in either era.

Runs on the bridge's event loop. A session knows the client's description of itself, its running
requests, which the client may cancel, and our open questions to it, which it answers. The states
(https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle):

==========  =============================  ==========================================
state       becomes                        the client may send
==========  =============================  ==========================================
new         open, by ``initialize``; over  ``initialize``, ``ping``
            HTTP when it is answered
open        ended                          all requests but ``initialize``;
                                           ``notifications/initialized`` has it
                                           notified of changes
ended                                      nothing
==========  =============================  ==========================================
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Literal, TypeAlias

import anyio

from mcp_notebook.bridge.server.sessions.client_profile import (
    ClientProfile,
    has_envelope,
    read_profile,
)
from mcp_notebook.protocol.errors import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    ProtocolError,
)
from mcp_notebook.protocol.messages import (
    Answer,
    Request,
    RequestId,
    coerce_id,
    write_notification,
    write_request,
)
from mcp_notebook.protocol.methods import (
    CANCELLED,
    INITIALIZE,
    METHODS,
    PING,
    InitializeParameters,
    read_parameters,
)
from mcp_notebook.protocol.versions import (
    HANDSHAKE_VERSIONS,
    LATEST_HANDSHAKE,
    PROTOCOL_VERSION_KEY,
)

SendMessage: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Sends a client a JSON-RPC message."""
EndReason: TypeAlias = Literal["cancelled", "session ended"]
"""Why a request ends early."""
OnEnd: TypeAlias = Callable[[EndReason], object]
MAX_INITIALIZE = 2**14
"""Maximum size of `initialize` in bytes."""
TOO_LONG = f"`initialize` can have at most {MAX_INITIALIZE:,} bytes."
_WITHDRAW_LIMIT = 1.0
"""Seconds to deliver the withdrawal of a question."""


class ClientSession:
    """A client that stays connected.

    All state of a client hangs on this object.

    Args:
        send: Sends the client messages that belong to no request.
    """

    def __init__(self, send: SendMessage) -> None:
        self.profile: ClientProfile | None = None
        """The client's description of itself; None before `initialize`, and at 2026-07-28."""
        self.has_ended = False
        self._send = send
        self._running: dict[RequestId, list[OnEnd]] = {}
        """By ID; a client should not use one twice at a time, but may."""
        self._questions: dict[RequestId, asyncio.Future[Answer]] = {}
        self._numbers = itertools.count()
        self._on_end = ExitStack()

    # -- its states --------------------------------------------------------------------------------

    def find_profile(self, message: Request) -> ClientProfile:
        """Return the client's description of itself: from before, or in its ``initialize``.

        Raises:
            ProtocolError: The parameters of ``initialize`` are invalid.
        """
        if message.method != INITIALIZE:
            # Before the handshake, only a ping gets here.
            return self.profile or read_profile(LATEST_HANDSHAKE, None, {}, self)
        params = read_parameters(INITIALIZE, LATEST_HANDSHAKE, message.params)
        assert isinstance(params, InitializeParameters)
        wanted = params.protocol_version
        version = wanted if wanted in HANDSHAKE_VERSIONS else LATEST_HANDSHAKE
        return read_profile(version, params.client_info, params.capabilities, self)

    def open(self, profile: ClientProfile) -> None:
        """Note that `initialize` is answered."""
        self.profile = profile

    def check(self, message: Request) -> None:
        """Check that the client may send a request now.

        Raises:
            ProtocolError: It has not initialized, or does so again, or the request is of
                2026-07-28.
        """
        if message.method == INITIALIZE:
            if self.profile is not None:
                reason = f"`{INITIALIZE}` has been answered: it is the first request of a session."
                raise ProtocolError(INVALID_REQUEST, reason)
            return
        if has_envelope(message.params):
            reason = (
                f"This session began with `{INITIALIZE}`, so its requests must not have "
                f"{PROTOCOL_VERSION_KEY!r} in their `_meta`."
            )
            raise ProtocolError(INVALID_REQUEST, reason)
        known = METHODS.get(message.method)
        is_unknown = (
            known is None or known.since > LATEST_HANDSHAKE
        )  # answered so, which helps more
        if self.profile is None and message.method != PING and not is_unknown:
            raise ProtocolError(INVALID_PARAMS, f"Send `{INITIALIZE}` before other requests.")

    def call_at_end(self, function: Callable[..., object], *arguments: Any) -> None:
        """Have a function called when the client leaves; now, if it has left."""
        if self.has_ended:
            function(*arguments)
        else:
            self._on_end.callback(function, *arguments)

    def end(self) -> None:
        """Note that the client has left: end its requests, and our questions to it."""
        self.has_ended = True
        for end in itertools.chain.from_iterable(tuple(self._running.values())):
            end("session ended")
        for answer in self._questions.values():
            if not answer.done():
                answer.set_exception(ProtocolError(CONNECTION_CLOSED, "The client has left."))
                answer.exception()  # its request may have ended, and no longer wait
        self._on_end.close()

    # -- its requests ------------------------------------------------------------------------------

    def run(self, request_id: RequestId, end: OnEnd) -> RunningRequest:
        """Have a request ended if its client cancels it, or leaves, until the end of the block."""
        return RunningRequest(self._running, coerce_id(request_id), end)

    def cancel(self, params: Mapping[str, Any] | None) -> None:
        """End the request that a ``notifications/cancelled`` names, if it runs."""
        named = (params or {}).get("requestId")
        if isinstance(named, int | str) and not isinstance(named, bool):
            for end in self._running.get(coerce_id(named), ())[-1:]:
                end("cancelled")

    # -- our messages ------------------------------------------------------------------------------

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send the client a notification that belongs to no request."""
        await self._send(write_notification(method, params))

    async def ask(
        self, method: str, params: Mapping[str, Any], send: SendMessage
    ) -> Mapping[str, Any]:
        """Send the client a request, and return its result.

        Args:
            method: Of the request.
            params: Of the request.
            send: Sends it, within the response to the client's own request.

        Raises:
            ProtocolError: The client answers with an error, or leaves.
        """
        if self.has_ended:
            raise ProtocolError(CONNECTION_CLOSED, "The client has left.")
        number = next(self._numbers)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._questions[number] = answer
        try:
            await send(write_request(number, method, params))
            said = await answer
        except asyncio.CancelledError:
            with anyio.move_on_after(_WITHDRAW_LIMIT, shield=True):
                withdrawn = {"requestId": number, "reason": "The answer is no longer needed."}
                await send(write_notification(CANCELLED, withdrawn))
            raise
        finally:
            del self._questions[number]
        if said.result is not None:
            return said.result
        error = said.error or {}
        raise ProtocolError(
            error.get("code", INTERNAL_ERROR), str(error.get("message")), error.get("data")
        )

    def take_answer(self, answer: Answer) -> None:
        """Deliver the client's answer; ignore it if no such question is open."""
        waiting = None if answer.id is None else self._questions.get(coerce_id(answer.id))
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)


class RunningRequest(AbstractContextManager[None]):
    """Lists what ends a request, from when it is made to the end of its block."""

    def __init__(self, running: dict[RequestId, list[OnEnd]], key: RequestId, end: OnEnd) -> None:
        self._running, self._key, self._end = running, key, end
        running.setdefault(key, []).append(end)

    def __exit__(self, *error: object) -> None:
        ends = self._running[self._key]
        ends.remove(self._end)
        if not ends:
            del self._running[self._key]
