"""The endpoint's sessions, and how it ends; the kernel is a stand-in that never answers a call."""

import json

import anyio
import pytest
from bridges import INITIALIZE, LIMIT, PING
from endpoints import call, called, modern, served
from live import TIMEOUT

from mcp_notebook.wire import messages, resource_uris

pytestmark = pytest.mark.anyio

STOPPED = "The bridge was stopped, and the call was cancelled."
SOON = 0.6
"""Minutes after which a session expires, for clients that shall lose it."""


def read_answer(answer):
    """Return the last message of an answer, as JSON or as the last event of a stream."""
    body = answer.body
    if answer.headers["Content-Type"].startswith("text/event-stream"):
        body = [line[6:] for line in body.splitlines() if line.startswith(b"data: ")][-1]
    return json.loads(body)


# -- sessions --------------------------------------------------------------------------------------


async def gone(here, session):
    """Wait until a session is gone."""
    with anyio.fail_after(TIMEOUT):
        # Nothing tells, and each request keeps it a little longer.
        while (await here.ask(PING, Mcp_Session_Id=session)).status != 404:  # noqa: ASYNC110
            await anyio.sleep(2 * SOON)


async def test_an_unused_session_expires_and_the_client_opens_a_new_one(home):
    async with served(home, sessions={"idle_seconds": SOON}) as here:
        session = await here.open_session()
        await gone(here, session)
        answer = await here.ask(PING, Mcp_Session_Id=session)
        assert (answer.status, answer.error["message"]) == (404, "Session not found")
        assert (await here.ask(INITIALIZE)).status == 200


@pytest.mark.slow
async def test_an_open_stream_keeps_its_session(home):
    async with served(home, sessions={"idle_seconds": SOON}) as here:
        kept, stream = await here.open_stream()
        with stream:
            await gone(here, await here.open_session())
            assert (await here.ask(PING, Mcp_Session_Id=kept)).status == 200


@pytest.mark.slow
@pytest.mark.parametrize("stays", [pytest.param(True, marks=pytest.mark.slow), False])
async def test_a_running_call_keeps_its_session_although_its_client_hangs_up(home, stays):
    async with served(home, sessions={"idle_seconds": SOON}) as here:
        kept, client = await here.open_call()
        (running,) = await called(here.kernel)
        if not stays:
            client.close()
        await gone(here, await here.open_session())
        assert (await here.ask(PING, Mcp_Session_Id=kept)).status == 200
        assert not any(isinstance(item, messages.Cancel) for item in here.kernel.heard)
        here.kernel.say(messages.Returned(id=running.id, content=[]))
        await gone(here, kept)
        client.close()


# -- the end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [True, False], ids=["a stream", "JSON"])
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_that_runs_when_the_bridge_stops_is_told_so(home, era, streams):
    async with served(home) as here:
        message, headers = call(progress=streams), {}
        if era == "modern":
            message, headers = modern(message)
        else:
            headers = {"Mcp-Session-Id": await here.open_session()}
        answers = []

        async def ask_and_keep():
            answers.append(await here.ask(message, **headers))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_and_keep)
            (running,) = await called(here.kernel)
            if streams:
                here.kernel.say(messages.Progress(id=running.id, progress=1))
            await here.ask(INITIALIZE)  # what came before has been handled
            here.stop.set()
        (answer,) = answers
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/event") is streams
        result = read_answer(answer)["result"]
        assert result["isError"] is True
        assert [block["text"] for block in result["content"]] == [STOPPED]
        await here.has_ended.wait()
        await here.kernel.cancelled.wait()


async def test_a_read_of_a_resource_is_answered_when_the_bridge_stops(home):
    async with served(home) as here:
        uri = f"{resource_uris.make_prefix(here.kernel.record.id)}1"
        message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}}
        message, headers = modern(message)
        answers = []

        async def ask_and_keep():
            answers.append(await here.ask(message, **headers))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_and_keep)
            await here.kernel.was_read.wait()
            here.stop.set()
        error = read_answer(answers[0])["error"]
        assert error["message"] == "The bridge was stopped before the resource was read."


async def test_open_sessions_and_streams_do_not_delay_the_end(home):
    async with served(home) as here:
        streams = [(await here.open_stream())[1] for _ in range(3)]
        here.stop.set()
        await here.has_ended.wait()
        for stream in streams:
            with stream:
                stream.settimeout(LIMIT)
                rest = b""
                while chunk := await anyio.to_thread.run_sync(stream.recv, 1_000):
                    rest += chunk
                assert rest.endswith(b"0\r\n\r\n"), "the stream was cut off"
