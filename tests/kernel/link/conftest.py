"""An endpoint without a kernel: it echoes calls."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from mcp_notebook.content import Image, Result, Text
from mcp_notebook.discovery.records import Record
from mcp_notebook.kernel.calls.call import Call, CallState
from mcp_notebook.kernel.link.endpoint import Endpoint
from mcp_notebook.kernel.link.resource_reader import ResourceReader
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.tasks.task_store import TaskStore
from mcp_notebook.wire import messages


@dataclass(eq=False)
class Timer:
    """Something that a clock runs."""

    when: float
    run: Callable[..., Any]
    arguments: tuple[Any, ...]
    is_cancelled: bool = False

    def cancel(self):
        self.is_cancelled = True


class Clock:
    """An event loop whose time stands still until a test has it pass."""

    def __init__(self):
        self._now = 0.0
        self._timers = []

    def time(self):
        return self._now

    def call_at(self, when, run, *arguments):
        self._timers.append(timer := Timer(when, run, arguments))
        return timer

    def call_later(self, seconds, run, *arguments):
        return self.call_at(self._now + seconds, run, *arguments)

    def call_soon_threadsafe(self, run, *arguments):
        return self.call_later(0, run, *arguments)

    def advance(self, seconds):
        """Let time pass, and run what is due meanwhile."""
        end = self._now + seconds
        while due := [timer for timer in tuple(self._timers) if timer.when <= end]:
            timer = min(due, key=lambda timer: timer.when)
            self._timers.remove(timer)
            self._now = max(self._now, timer.when)
            if not timer.is_cancelled:
                timer.run(*timer.arguments)
        self._now = end


@pytest.fixture
def clock():
    return Clock()


TOOL = messages.ToolInfo(name="echo", input_schema={"type": "object"})


class Echo:
    """Answers each call with its arguments, at once."""

    def __init__(self):
        self.cancelled = threading.Event()
        self.tools = [TOOL]
        self.missing = {}
        self.report = self.send_log = self.reply = self.elicitations = None
        self.store = ResourceStore("test", 10**6)
        self.tasks = TaskStore("test", ttl=60, max_bytes=10**6)

    calls = ()

    def take(self, tool, arguments, reply, client):
        if tool == "unsubmitted":
            raise RuntimeError("can't start new thread")
        if tool == "never":
            self.report, self.send_log, self.reply = client.report, client.send_log, reply
            self.elicitations = client.elicitations
        call = Call(tool, arguments)
        call.reply = reply
        return call

    def start(self, call):
        call.move(CallState.RUNNING)
        if call.tool == "broken":
            call.reply(Result([Text("x")], structured={"x": object()}))
        elif call.tool == "picture":
            call.reply(Result([Image(os.urandom(3_000_000))]))
        elif call.tool != "never":
            call.reply(Result([Text(f"{call.tool} {call.arguments}")]))

    def cancel(self, _call, reason):
        self.cancel_reason = reason
        self.cancelled.set()
        if reason == "raise":
            raise RuntimeError("Event loop is closed")

    def describe(self, call):
        return f"echoing {call.tool}"


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture(params=[False, True], ids=["unix", "tcp"])
def listening(request, home, echo):
    before = threading.enumerate()
    endpoint = Endpoint(
        echo,
        lambda _inspects: messages.Tools(tools=list(echo.tools), missing=dict(echo.missing)),
        ResourceReader(echo.store),
        tasks=echo.tasks,
        path=home / "test.sock",
        tcp=request.param,
    )
    address = endpoint.start()
    record = Record(
        id="test",
        pid=os.getpid(),
        started=0,
        host="here",
        version="0",
        protocol=messages.PROTOCOL_VERSION,
        name="test",
        socket=address.socket,
        port=address.port,
        token=address.token,
    )
    yield endpoint, record, echo
    endpoint.stop("The test is over.")
    for thread in threading.enumerate():
        if thread.name == "mcp-notebook-read":
            thread.join(30)  # it has nothing left to do
    left = {thread.name for thread in threading.enumerate() if thread not in before}
    # Limits are of calls: those of other tests may still be interrupting code that ignores it.
    assert not [name for name in left - {"mcp-notebook-limit"} if "mcp-notebook" in name]
