"""Whatever users and clients do in whatever order, both ways answer alike.

A seed makes up a sequence: cells that define, redefine and remove tools, lists and calls of clients
of both eras over both transports. Each request is sent to the server with the short way and to the
one without.
"""

import asyncio
import json
import os
from contextlib import AsyncExitStack
from itertools import chain
from random import Random

import anyio
import pytest
from generated_requests import CAPABILITIES, CLIENT, MODERN_VERSION, VERSION, Request
from live import record_of
from short_way import FIRST, Comparison, both_sides, normalise_message, opened_pipes

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name == "nt", reason="pipes")]

NAMES = ("alpha", "beta", "gamma", "delta")
SHAPES = {
    "n: int": ({"n": 3}, {"n": "three"}),
    "text: str, *, loud: bool = False": ({"text": "hi"}, {"text": 1}),
    "values: list[int]": ({"values": [1, 2]}, {"values": {}}),
    "": ({}, {"extra": 1}),
}
BODIES = {
    "value": "return [{number}, str(locals())]",
    "error": "raise ValueError('{number}')",
    "picture": "return Image(PIXEL)",
    "object": "return {{'number': {number}}}",
}
SESSIONS = ("usual", "codex", "third", "first")
FIRST_CELL = """
import asyncio, base64
from mcp_notebook import Image, mcp_tool
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)
"""


class Sequence:
    """One sequence.

    Args:
        random: Makes it up.
        kernel: The kernel.
        pairs: Both servers for HTTP, and those for each era over stdio.
        pipes: Of the clients over stdio.
    """

    def __init__(self, random, kernel, pairs, pipes):
        self._random = random
        self._kernel = kernel
        self._pairs, self._pipes = pairs, pipes
        self.comparisons = {name: Comparison(sides) for name, sides in pairs.items()}
        self._number = 0
        self._shapes = {}
        """Of the tools that there are, by their names."""

    async def run(self, steps):
        """Do so many steps."""
        for _ in range(steps):
            self._number += 1
            if not self._shapes or self._random.random() < 0.2:
                await self._define()
            elif self._random.random() < 0.08:
                await self._remove()
            else:
                await self._ask()

    async def _define(self):
        name, shape = self._random.choice(NAMES), self._random.choice(list(SHAPES))
        body = BODIES[self._random.choice(list(BODIES))].format(number=self._number)
        cell = f'%%mcp_tool\ndef {name}({shape}):\n    "Number {self._number}."\n    {body}'
        await self._run_cell(cell)
        self._shapes[name] = shape
        await self._wait_for_tools(lambda tools: f"Number {self._number}." in tools.get(name, ""))

    async def _remove(self):
        name = self._random.choice(list(self._shapes))
        del self._shapes[name]
        await self._run_cell(f"del {name}")
        await self._wait_for_tools(lambda tools: name not in tools)

    async def _run_cell(self, code):
        await anyio.to_thread.run_sync(self._kernel.ok, code)

    async def _wait_for_tools(self, is_known):
        """Wait until all servers have heard of a change."""
        with anyio.fail_after(30):
            for side in chain(*self._pairs.values()):
                while not is_known(_describe_tools(side)):
                    await anyio.lowlevel.checkpoint()

    async def _ask(self):
        era = self._random.choice(("handshake", "modern"))
        if self._random.random() < 0.3:
            method, params = "tools/list", {}
        else:
            name = self._random.choice(NAMES)
            arguments = self._random.choice(SHAPES[self._shapes.get(name, "")])
            method, params = "tools/call", {"name": name, "arguments": arguments}
        if era == "modern":
            client = {"name": self._random.choice(("test", "codex-mcp-client")), "version": "1"}
            params["_meta"] = {VERSION: MODERN_VERSION, CAPABILITIES: {}, CLIENT: client}
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        body = json.dumps(message).encode()
        if self._random.random() < 0.5:
            pair = era
            answers = await asyncio.gather(*(_exchange(each, body) for each in self._pipes[era]))
        else:
            pair = "http"
            request = self._make_request(era, message, body)
            answers = await asyncio.gather(*(side.ask(request) for side in self._pairs[pair]))
        self.comparisons[pair].note(message, answers)

    def _make_request(self, era, message, body):
        headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ]
        if era == "handshake":
            session = self._random.choice(SESSIONS)
            return Request(era, message, body=body, headers=headers, session=session)
        headers += [("mcp-protocol-version", MODERN_VERSION), ("mcp-method", message["method"])]
        if "name" in message["params"]:
            headers.append(("mcp-name", message["params"]["name"]))
        return Request(era, message, body=body, headers=headers)


def _describe_tools(side):
    return {each.tool.name: each.tool.description or "" for each in side.catalog.entries()}


async def _exchange(pipes, line):
    """Send a line over stdio; return the answer, without notices that the list has changed."""
    await pipes.send(line)
    while "method" in json.loads(answer := await pipes.receive()):
        pass
    return normalise_message(answer)


@pytest.mark.parametrize(
    ("sequences", "steps"),
    [
        (1, 30),
        pytest.param(6, 60, marks=pytest.mark.slow),
        pytest.param(20, 100, marks=[pytest.mark.exhaustive, pytest.mark.timeout(600)]),
    ],
)
async def test_whatever_is_done_in_whatever_order_is_answered_alike(
    shared_kernel, sequences, steps, record_property
):
    kernel = shared_kernel
    for seed in range(sequences):
        kernel.ok("%reset -f\n%reload_ext mcp_notebook")
        kernel.ok(FIRST_CELL)
        async with (
            both_sides([record_of(kernel)], kernel.home) as http,
            both_sides([record_of(kernel)], kernel.home, with_http=False) as handshake,
            both_sides([record_of(kernel)], kernel.home, with_http=False) as modern,
            AsyncExitStack() as stack,
        ):
            pairs = {"http": http, "handshake": handshake, "modern": modern}
            pipes = {
                era: [
                    await stack.enter_async_context(opened_pipes(side, era)) for side in pairs[era]
                ]
                for era in FIRST
            }
            sequence = Sequence(Random(seed), kernel, pairs, pipes)
            await sequence.run(steps)
        for comparison in sequence.comparisons.values():
            comparison.check(record_property)
