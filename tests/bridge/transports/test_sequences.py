"""Whatever a client does, in whatever order: each is answered as MCP says, and nothing is left."""

import asyncio
from random import Random

import anyio
import psutil
import pytest
from bridges import INITIALIZE
from endpoints import called, modern, served
from hand_written_clients import BROKEN, Http, Sent, Stdio, until
from mcp_types import methods

from mcp_notebook.protocol import errors
from mcp_notebook.protocol.versions import PROTOCOL_VERSION_KEY
from mcp_notebook.wire import messages

SEQUENCES, STEPS = 16, 50
DONE, NOTHING = "result", None
"""Beside codes: a valid result, and a response without an answer."""


class Sequence:
    """The model: what one client has opened, and what each step is answered."""

    def __init__(self, client, random, tasks):
        self.client, self.random, self.tasks, self.number = client, random, tasks, 0
        self.is_open, self.calls, self.streams = client.is_modern, [], []
        self.kernel, self.is_http = client.here.kernel, client.is_http
        self.sessions = client.here.endpoint._sessions._sessions

    async def request(self, method, params=None, number=None, **options):
        self.number += 1
        message = {"jsonrpc": "2.0", "id": number or self.number, "method": method}
        message, headers = message | {"params": params or {}}, None
        if self.client.is_modern:
            message, headers = modern(message)
        return await self.client.send(message, headers, **options)

    async def check(self, sent, expected, status=None):
        answer = await self.client.take(sent)
        if self.is_http:
            is_200 = not self.client.is_modern and isinstance(sent.message, dict)
            usual = 200 if is_200 else errors.HTTP_STATUSES.get(expected, 200)
            assert self.client.status == (status or usual)
        if expected is NOTHING:
            assert answer is None
            return
        version = "2026-07-28" if self.client.is_modern else "2025-11-25"
        if expected != DONE:
            assert answer["error"]["code"] == expected
        elif (sent.message["method"], version) in methods.SERVER_RESULTS:
            methods.validate_server_result(sent.message["method"], version, answer["result"])

    async def ask(self, method, expected=DONE, params=None, **options):
        status = None
        if not self.is_open and method != "initialize":
            if self.is_http:
                expected, status = errors.INVALID_REQUEST, 400
            elif expected == DONE:
                expected = errors.INVALID_PARAMS
        await self.check(await self.request(method, params, **options), expected, status)

    async def notify(self, **message):
        sent = await self.client.send({"jsonrpc": "2.0", **message})
        if self.is_http:
            is_taken = self.is_open and ("method" in message or not self.client.is_modern)
            code, status = (NOTHING, 202) if is_taken else (errors.INVALID_REQUEST, 400)
            await self.check(sent, code, status)

    async def see_cancelled(self, *calls):
        numbers = {sent.call for sent in calls}
        heard = self.kernel.heard
        await until(lambda: numbers <= {e.id for e in heard if isinstance(e, messages.Cancel)})
        for number in numbers:
            self.kernel.say(messages.Returned(id=number, content=[]))

    def take_calls(self):
        running = [*self.calls, *self.streams]
        calls, self.calls, self.streams = self.calls, [], []
        return calls, running

    async def come_back(self):
        """Connect; over stdio, the first request decides the era."""
        if not self.is_http:
            assert not [each for each in self.client.heard if "method" not in each]
            self.client = Stdio(self.client.here, self.client.is_modern)
            self.tasks.start_soon(self.client.serve)
            first = "server/discover" if self.client.is_modern else "ping"
            await self.check(await self.request(first), DONE)

    # -- the steps ---------------------------------------------------------------------------------

    async def open(self):
        if self.is_open:
            expected = DONE if self.client.is_modern else errors.METHOD_NOT_FOUND
            await self.ask("server/discover", expected)
            if not self.client.is_modern:
                await self.ask("initialize", errors.INVALID_REQUEST, INITIALIZE["params"])
        else:
            await self.ask("initialize", DONE, INITIALIZE["params"])
            self.is_open = True
            await self.notify(method="notifications/initialized")

    async def list(self):
        sent = [await self.request("tools/list", pause=True) for _ in range(2 * self.is_open)]
        for each in self.random.sample(sent, len(sent)):
            await self.check(each, DONE)
        await self.ask("prompts/list")

    async def call(self):
        if self.is_open and len(self.calls) < 4:
            before = sum(isinstance(each, messages.Call) for each in self.kernel.heard)
            sent = await self.request("tools/call", {"name": "top"})
            sent.call = (await called(self.kernel, before + 1))[-1].id
            self.calls.append(sent)

    async def finish(self):
        for sent in self.calls[:1]:
            await self.ask("tools/list", number=sent.message["id"])  # its id once more
            self.kernel.say(messages.Returned(id=sent.call, content=[]))
            await self.check(sent, DONE)
            self.calls.remove(sent)

    async def cancel(self):
        await self.notify(method="notifications/cancelled", params={"requestId": "unknown"})
        for sent in self.calls[-1:]:
            self.calls.remove(sent)
            if self.is_http and self.client.is_modern:
                await sent.hang_up()
            else:
                params = {"requestId": sent.message["id"]}
                await self.notify(method="notifications/cancelled", params=params)
            await self.see_cancelled(sent)
            if self.is_http and not self.client.is_modern:
                await self.check(sent, errors.REQUEST_CANCELLED)

    async def drop_the_connection(self):
        if not self.is_http:
            await self.close()
            return
        calls, running = self.take_calls()
        for sent in running:
            await sent.hang_up()
        if self.client.is_modern:
            await self.see_cancelled(*calls)
        for sent in calls:  # in a session they go on, and nobody hears of it
            self.kernel.say(messages.Returned(id=sent.call, content=[]))
        await until(lambda: not any(each.stream for each in self.sessions.values()))

    async def close(self):
        if not self.is_http:
            half = Sent(b'{"jsonrpc"')
            self.client.lines.data_received(half.message)
            self.client.lines.eof_received()
            await self.check(half, errors.PARSE_ERROR)
        elif self.client.is_modern or not self.is_open:
            status = 405 if self.client.is_modern else 404 if self.client.session else 400
            sent = await self.client.send({}, verb="DELETE")
            await self.check(sent, errors.INVALID_REQUEST, status)
            return
        else:
            await self.check(await self.client.send({}, verb="DELETE"), NOTHING)
            await self.check(await self.request("ping"), errors.INVALID_REQUEST, 404)
        calls, running = self.take_calls()
        for sent in running:
            await self.check(sent, NOTHING if self.is_http else errors.CONNECTION_CLOSED)
        await self.see_cancelled(*calls)
        self.is_open = self.client.is_modern
        if self.is_http:
            self.client.session = {}
        else:
            await self.come_back()

    async def subscribe(self):
        if self.client.is_modern and len(self.streams) < 4:
            params = {"notifications": {"toolsListChanged": True}}
            self.streams.append(await self.request("subscriptions/listen", params))
            await self.client.wait_for(self.streams[-1], b"subscriptions/acknowledged")
        elif self.is_http and self.is_open and not self.client.is_modern:
            sent = await self.client.send({}, verb="GET")
            if self.streams:
                await self.check(sent, errors.INVALID_REQUEST, 409)
            else:
                await self.client.wait_for(sent, b"text/event-stream")
                self.streams.append(sent)

    async def send_something_broken(self):
        body = self.random.choice(list(BROKEN))
        await self.check(await self.client.send(body), BROKEN[body])
        if self.is_http:
            half = await self.client.send(body, {"Content-Length": len(body) + 9})
            await half.hang_up()

    async def ask_for_what_there_is_not(self):
        await self.ask("nobody/knows", errors.METHOD_NOT_FOUND)
        await self.ask("tasks/list", errors.METHOD_NOT_FOUND)
        await self.ask("tools/call", errors.INVALID_PARAMS, {"name": "top", "arguments": 1})
        await self.notify(id=99, result={})  # an answer to what was not asked

    async def speak_of_the_other_era(self):
        message, headers = modern({"jsonrpc": "2.0", "id": "other", "method": "tools/list"})
        if not self.client.is_modern:
            status = None if self.is_open or not self.is_http else 400
            await self.check(await self.client.send(message), errors.INVALID_REQUEST, status)
            return
        handshake = await self.client.send(INITIALIZE, {"Mcp-Method": "initialize"})
        is_missing = errors.INVALID_PARAMS  # what each request has to say of its client
        code = is_missing if self.is_http else errors.UNSUPPORTED_PROTOCOL_VERSION
        await self.check(handshake, code)
        message["params"]["_meta"][PROTOCOL_VERSION_KEY] = "1900-01-01"
        if self.is_http:
            await self.check(await self.client.send(message, headers), errors.HEADER_MISMATCH)
            headers["Mcp-Protocol-Version"] = "1900-01-01"
        sent = await self.client.send(message, headers)
        await self.check(sent, errors.UNSUPPORTED_PROTOCOL_VERSION)


def look():
    return len(asyncio.all_tasks()), psutil.Process().num_fds()


@pytest.mark.anyio
@pytest.mark.skipif(not hasattr(psutil.Process, "num_fds"), reason="descriptors")
@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("way", [Http, Stdio])
async def test_each_step_is_answered_as_mcp_says_and_nothing_is_left(home, way, era):
    names = [name for name, each in vars(Sequence).items() if asyncio.iscoroutinefunction(each)]
    names = names[names.index("open") :]
    async with served(home) as here:
        await here.send(None, "GET", path="/healthz")
        await anyio.wait_all_tasks_blocked()
        before = look()
        for seed in range(SEQUENCES):
            steps = ["come_back", *Random(seed).choices(names, k=STEPS), "close"]
            async with anyio.create_task_group() as tasks:
                sequence = Sequence(way(here, era == "modern"), Random(seed), tasks)
                for at, step in enumerate([*steps, "drop_the_connection", "close"]):
                    try:
                        with anyio.fail_after(10):
                            await getattr(sequence, step)()
                    except (AssertionError, TimeoutError) as error:
                        error.add_note(f"seed {seed}, steps {steps[: at + 1]}")
                        raise
                tasks.cancel_scope.cancel()
            with anyio.fail_after(10):
                await until(lambda: look() == before)
            server = here.endpoint._server
            left = sequence.sessions, server.clients._sessions, server.changes._listeners
            assert not any(left)
            assert not server.open_streams.shares._total
