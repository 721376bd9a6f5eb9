"""When all requests of a stdio client are answered."""

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from mcp_notebook.bridge.transports.open_requests import OpenRequests

pytestmark = pytest.mark.anyio


def request(number=1):
    return types.JSONRPCRequest(jsonrpc="2.0", id=number, method="ping")


@pytest.mark.parametrize(
    "answer",
    [
        types.JSONRPCResponse(jsonrpc="2.0", id=1, result={}),
        types.JSONRPCError(jsonrpc="2.0", id=1, error=types.ErrorData(code=1, message="no")),
    ],
    ids=["result", "error"],
)
async def test_a_request_is_open_until_its_answer_has_been_sent(answer):
    requests = OpenRequests()
    outgoing, receive = anyio.create_memory_object_stream(0)
    async with outgoing, receive, anyio.create_task_group() as tasks:
        requests.note_incoming(request())
        tasks.start_soon(requests.count_outgoing(outgoing).send, SessionMessage(answer))
        await anyio.wait_all_tasks_blocked()
        assert requests.open_ids == {1}
        await receive.receive()
        with anyio.fail_after(20):
            await requests.wait_until_answered()
    assert not requests.open_ids


async def test_what_the_client_has_cancelled_is_not_waited_for():
    requests = OpenRequests()
    requests.note_incoming(request())
    requests.note_incoming(
        types.JSONRPCNotification(
            jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 1}
        )
    )
    with anyio.fail_after(20):
        await requests.wait_until_answered()


async def test_other_messages_answer_nothing():
    requests = OpenRequests()
    requests.note_incoming(request(1))
    requests.note_incoming(types.JSONRPCNotification(jsonrpc="2.0", method="notifications/x"))
    for message in [
        types.JSONRPCNotification(jsonrpc="2.0", method="notifications/progress"),
        types.JSONRPCRequest(jsonrpc="2.0", id=1, method="elicitation/create"),
        types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=1, message="no")),
        types.JSONRPCResponse(jsonrpc="2.0", id="1", result={}),
    ]:
        requests.note_outgoing(message)
    assert requests.open_ids == {1}
