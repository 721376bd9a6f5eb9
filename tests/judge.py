"""Validates every message that the official client receives in a test, with MCP's official types.

`judged` stands between the client and its transport, and compares
each result, notification and request of ours with the version of MCP that the session has. A
message that is not one fails the test, whatever the client makes of it.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import methods
from mcp_types.jsonrpc import (
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from mcp_notebook.bridge.server.requests import Piece, expand
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.transports.stdio import StdioClient
from mcp_notebook.protocol.messages import read_message
from mcp_notebook.protocol.versions import LATEST_HANDSHAKE, PROTOCOL_VERSION_KEY


class Judge:
    """What one client has asked, and the version that was agreed on."""

    def __init__(self) -> None:
        self.version = LATEST_HANDSHAKE
        self._asked: dict[Any, tuple[str, str]] = {}

    def note(self, message: Any) -> None:
        """Note a message of the client."""
        if isinstance(message, JSONRPCRequest):
            meta = (message.params or {}).get("_meta") or {}
            self.version = meta.get(PROTOCOL_VERSION_KEY, self.version)
            self._asked[str(message.id)] = message.method, self.version

    def check(self, message: Any) -> None:
        """Fail for a message of ours that is not one of MCP's."""
        match message:
            case JSONRPCResponse(id=answered, result=result):
                method, version = self._asked.pop(str(answered))
                if method == "initialize":
                    self.version = version = result["protocolVersion"]
                is_task = result.get("resultType") == "task"  # of an extension
                if (method, version) in methods.SERVER_RESULTS and not is_task:
                    methods.validate_server_result(method, version, result)
            case JSONRPCNotification(method=method, params=params):
                kind = methods.SERVER_NOTIFICATIONS[method, self.version]
                body = {"jsonrpc": "2.0", "method": method}
                kind.model_validate(body if params is None else {**body, "params": params})
            case JSONRPCRequest(method=method, params=params):
                kind = methods.SERVER_REQUESTS[method, self.version]
                kind.model_validate(
                    {"jsonrpc": "2.0", "id": 0, "method": method, "params": params or {}}
                )


@asynccontextmanager
async def judged(transport: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
    """Pass all messages of a transport on, and compare ours with MCP's types."""
    judge = Judge()
    ours, to_client = anyio.create_memory_object_stream[Any](100)
    from_client, theirs = anyio.create_memory_object_stream[Any](100)
    failures: list[Exception] = []

    async def hear() -> None:
        async with ours:
            async for item in read:
                try:
                    if isinstance(item, SessionMessage):
                        judge.check(item.message)
                except Exception as error:  # noqa: BLE001 - told at the end, whatever it is
                    failures.append(error)
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it has left
                    await ours.send(item)

    async def say() -> None:
        async with write:
            async for item in theirs:
                judge.note(item.message)
                await write.send(item)

    async with (
        ours,
        to_client,
        from_client,
        theirs,
        transport as (read, write),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(hear)
        tasks.start_soon(say)
        try:
            yield to_client, from_client
        finally:
            tasks.cancel_scope.cancel()
    if failures:
        raise ExceptionGroup("not messages of MCP", failures)


def in_process(server: NotebookServer) -> AbstractAsyncContextManager[Any]:
    """Return the transport to a server of the test's own process, as over stdio, and judged."""
    return judged(_connect(server))


@asynccontextmanager
async def _connect(server: NotebookServer) -> AsyncIterator[Any]:
    ours, to_client = anyio.create_memory_object_stream[Any](1_000)
    from_client, theirs = anyio.create_memory_object_stream[Any](1_000)

    async def send(*pieces: Piece) -> None:
        text = b"".join(expand(pieces))
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the client has left
            await ours.send(SessionMessage(message))

    client = StdioClient(server, send)

    async def listen() -> None:
        async for item in theirs:
            text = jsonrpc_message_adapter.dump_json(
                item.message, by_alias=True, exclude_unset=True
            )
            client.take(read_message(text))

    async with ours, to_client, from_client, theirs, anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        try:
            yield to_client, from_client
        finally:
            with anyio.CancelScope(shield=True):
                await client.close()
            tasks.cancel_scope.cancel()
