"""How long the doctor waits for servers that never come to an end."""

from contextlib import suppress

import anyio
import pytest
from live import TIMEOUT

from mcp_notebook.doctor import probes

pytestmark = pytest.mark.anyio
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


async def _send_comments_without_end(stream):
    with suppress(anyio.BrokenResourceError, anyio.EndOfStream):  # given up
        async with stream:
            await stream.receive()
            await stream.send(_STREAM)
            while True:
                await stream.send(b": ping\n\n")
                await anyio.sleep(0.01)


async def test_a_stream_that_has_only_comments_is_given_up(monkeypatch):
    monkeypatch.setattr(probes, "_HTTP_LIMIT", 0.2)
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, _send_comments_without_end)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        with anyio.fail_after(TIMEOUT):
            assert await probes.ask_name(f"http://127.0.0.1:{port}/mcp", {}) is None
        tasks.cancel_scope.cancel()
