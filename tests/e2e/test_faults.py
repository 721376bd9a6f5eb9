"""Faults of kernel, bridge and client, while a call is in each of its states: what then holds.

`CELLS` says for each party and fault, and for each state of the call, what its client gets. What
holds in all cells is checked after each: another notebook's tool answers meanwhile, and afterwards
the same tool answers a new client with its own result, once.
"""

import http.client
import json
import re
import signal
import socket
import struct
import time
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from bridges import TOKEN, bridge
from forked_command import find_pid
from limits_files import set_limits
from live import TIMEOUT, live_kernel, until

MODERN = "2026-07-28"
STATES = ("idle", "queued", "running", "returning")
SIZE = 4_000_000
"""Characters of the result while it is returned: more than sockets hold."""
PAUSE = 0.3
"""Seconds for which a process is stopped."""


class Holds(StrEnum):
    """What the client of the call gets."""

    OWN = "its own result"
    LOST = "an error that says what happened to its call"
    OWN_OR_LOST = "its own result, or an error that says what happened to its call"
    CUT = "the end of its connection"
    NOTHING = "nothing, as it has gone; the kernel is free again"


OWN, LOST, OWN_OR_LOST, CUT, NOTHING = Holds
CELLS = {
    # party, fault:          idle, queued, running, returning
    ("kernel", "killed"): (LOST, LOST, LOST, OWN_OR_LOST),
    ("kernel", "terminated"): (LOST, LOST, LOST, OWN_OR_LOST),
    ("kernel", "stopped"): (OWN, OWN, OWN, OWN),
    ("kernel", "restarted"): (LOST, OWN_OR_LOST, LOST, OWN_OR_LOST),
    ("kernel", "slow"): (OWN, OWN, OWN, OWN),
    ("kernel", "cut"): (OWN_OR_LOST, LOST, LOST, OWN_OR_LOST),
    ("kernel", "disk full"): (OWN, OWN, OWN, OWN),
    ("bridge", "killed"): (CUT, CUT, CUT, CUT),
    ("bridge", "terminated"): (CUT, LOST, LOST, OWN_OR_LOST),
    ("bridge", "stopped"): (OWN, OWN, OWN, OWN),
    ("bridge", "restarted"): (OWN, LOST, LOST, OWN_OR_LOST),
    ("bridge", "slow"): (OWN, OWN, OWN, OWN),
    ("bridge", "disk full"): (OWN, OWN, OWN, OWN),
    ("client", "killed"): (NOTHING, NOTHING, NOTHING, NOTHING),
    ("client", "terminated"): (NOTHING, NOTHING, NOTHING, NOTHING),
    ("client", "stopped"): (OWN, OWN, OWN, OWN),
    ("client", "restarted"): (OWN, OWN, OWN, OWN),
    ("client", "slow"): (OWN, OWN, OWN, OWN),
    ("client", "cut"): (NOTHING, NOTHING, NOTHING, NOTHING),
}
"""A cut bridge is a cut kernel or a cut client: the connections are the same. A client has no disk
that matters here."""
ENDING = ("killed", "terminated", "restarted")
"""Faults that end a process."""
OFTEN = {
    ("kernel", "killed", "running"),
    ("bridge", "disk full", "idle"),
    ("client", "cut", "queued"),
}
"""The cells that the default suite runs."""

TOOLS = '''%%mcp_tool
import asyncio, pathlib, threading, time
from mcp_notebook import mcp_tool

def hold() -> None:
    """Keep the main thread until a file is there."""
    pathlib.Path("holding").touch()
    while not pathlib.Path("release").exists():
        time.sleep(0.01)

def echo(text: str) -> str:
    """Return a text."""
    return text

def echo_slowly(text: str) -> str:
    """Return a text when a file is there."""
    pathlib.Path("running").touch()
    while not pathlib.Path("release").exists():
        time.sleep(0.01)
    return text

def echo_much(text: str) -> str:
    """Return a text and very much more."""
    pathlib.Path("running").touch()
    return text + "x" * SIZE

@mcp_tool(run="thread")
def cut() -> None:
    """Cut the kernel's connections to bridges, whatever is on its way."""
    import gc, socket
    for thing in gc.get_objects():
        if isinstance(thing, asyncio.Transport) and not thing.is_closing():
            sock = thing.get_extra_info("socket")
            if sock is not None and sock.family == socket.AF_UNIX:
                sock.shutdown(socket.SHUT_RDWR)  # at once: this call's own result must not leave
'''
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class System:
    """A bridge over HTTP, the kernel that faults concern, and another one that they do not."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.folder = home / "work"
        self._others = ExitStack()
        self._kernel_end = ExitStack()
        self._bridge_end = ExitStack()
        self._calls: list[Call] = []
        self.kernel = self.bridge = None
        self.url = ""

    def __enter__(self):
        self.folder.mkdir()
        other = self._others.enter_context(
            live_kernel(self._home, notebook=str(self._home / "other.ipynb"))
        )
        other.ok("%load_ext mcp_notebook")
        other.ok('%%mcp_tool\ndef ping(text: str):\n    "Answer."\n    return text')
        self.start_kernel()
        self.start_bridge()
        return self

    def __exit__(self, *error):
        for part in (self._bridge_end, self._kernel_end, self._others):
            part.close()

    def start_kernel(self) -> None:
        """Start the kernel anew, and run its cells."""
        self._kernel_end.close()
        env = set_limits(self._home, max_result_chars=2 * SIZE)
        kernel = live_kernel(self._home, notebook=str(self._home / "sales.ipynb"), env=env)
        self.kernel = self._kernel_end.enter_context(kernel)
        self.run_cells()

    def run_cells(self) -> None:
        """Run the cells of the kernel's notebook."""
        self.kernel.ok(f"import os; os.chdir({str(self.folder)!r}); SIZE = {SIZE}")
        self.kernel.ok("%load_ext mcp_notebook")
        self.kernel.ok(TOOLS)

    def start_bridge(self) -> None:
        """Start a bridge, at the same address as before."""
        self._bridge_end.close()
        port = str(urlsplit(self.url).port) if self.url else "0"
        env = {"MCP_NOTEBOOK_TOKEN": TOKEN}
        process = bridge(self._home, "serve", "--port", port, env=env)
        self.bridge = self._bridge_end.enter_context(process)
        self.url = self.bridge.url

    def repair(self) -> None:
        """Start again what is not there any more, and remove what calls have written."""
        if self.bridge.process.poll() is not None:
            self.start_bridge()
        if self.call("echo", text="there").read() != "there":
            self.start_kernel()
            until(lambda: self.call("echo", text="there").read() == "there")
        for file in self.folder.iterdir():
            file.unlink()

    def wait_for_end(self, party: str) -> None:
        """Wait until the process of the kernel or the bridge has ended, or is another one."""
        if party == "bridge":
            self.bridge.wait()
        else:
            until(lambda: self.call("echo", text="").read().startswith("ERROR"))

    def has_written(self, name: str) -> None:
        """Wait until a call has written a file."""
        until((self.folder / name).exists)

    def call(self, tool: str, *, share: float = 1, **arguments: str) -> "Call":
        """Call a tool, with a connection of its own, or send a share of the request."""
        call = Call(self.url, tool, arguments, share)
        self._calls.append(call)
        return call

    def hang_up(self) -> None:
        """Close what a failed test has left open."""
        while self._calls:
            self._calls.pop().socket.close()

    def release(self) -> None:
        """Let the calls that wait return."""
        (self.folder / "release").touch()


class Call:
    """A call on its way: its request has been sent, and nothing of the answer is read."""

    def __init__(self, url: str, tool: str, arguments: dict[str, str], share: float) -> None:
        parts = urlsplit(url)
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": META},
        }
        body = json.dumps(message).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
            f"Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nMcp-Protocol-Version: {MODERN}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=TIMEOUT)
        request = head.encode() + body
        self.socket.sendall(request[: int(len(request) * share)])

    def read(self, *, slowly: bool = False) -> str:
        """Return the text of the answer.

        Raises:
            OSError: The connection has ended before.
        """
        try:
            if slowly:
                for _ in range(20):
                    self.socket.recv(1, socket.MSG_PEEK)
                    time.sleep(PAUSE / 20)  # what being slow is
            response = http.client.HTTPResponse(self.socket)
            response.begin()
            body = response.read().decode()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            self.socket.close()
        if body.startswith("{"):
            message = json.loads(body)
        else:
            message = json.loads(re.findall(r"^data: (\{.*)$", body, re.MULTILINE)[-1])
        if "error" in message:
            return f"ERROR {message['error']['message']}"
        text = message["result"]["content"][0]["text"]
        return f"ERROR {text}" if message["result"].get("isError") else text

    def vanish(self) -> None:
        """End the connection as the end of a process does that had not read everything."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


# -- the faults ------------------------------------------------------------------------------------


def _send_signal(number):
    return lambda process: process.send_signal(number)


def _pause(process):
    process.suspend()
    time.sleep(PAUSE)  # what a stop is
    process.resume()


def _slow_down(process):
    for _ in range(5):
        _pause(process)


def _fill_disk(process):
    """Let no write to a file succeed: as on a full disk, or over a quota."""
    process.rlimit(psutil.RLIMIT_FSIZE, (0, psutil.RLIM_INFINITY))


FAULTS = {
    "killed": _send_signal(signal.SIGKILL),
    "terminated": _send_signal(signal.SIGTERM),
    "stopped": _pause,
    "slow": _slow_down,
    "disk full": _fill_disk,
}


def apply_fault(system, party, fault):
    """Let a fault happen to the kernel or the bridge."""
    if fault == "cut":
        assert system.call("cut").read().startswith("ERROR")  # its own link is among them
    elif (party, fault) == ("kernel", "restarted"):
        system.kernel.manager.restart_kernel(now=False)
    elif (party, fault) == ("bridge", "restarted"):
        apply_fault(system, party, "terminated")  # it is started again below
    else:
        pid = system.kernel.pid if party == "kernel" else find_pid(system.bridge.process.pid)
        FAULTS[fault](psutil.Process(pid))


# -- a call in each state --------------------------------------------------------------------------


def start_call(system, state, text):
    """Return a call that is in this state, and one that holds the main thread, if it needs one."""
    if state == "queued":
        holder = system.call("hold")
        system.has_written("holding")
        return system.call("echo", text=text), holder
    if state == "running":
        call = system.call("echo_slowly", text=text)
        system.has_written("running")
        return call, None
    call = system.call("echo_much", text=text)
    system.has_written("running")
    return call, None


def check_answer(holds, call, text, **options):
    """Check that the client gets what the table says."""
    try:
        answer = call.read(**options)
    except OSError:
        assert holds is CUT, "the connection has ended"
        return
    own, lost = answer.startswith(text), answer.startswith("ERROR ")
    if lost:
        assert re.search("kernel|bridge|stopped|lost|gone|restart", answer), answer
    expected = {OWN: own, LOST: lost, OWN_OR_LOST: own or lost}
    assert expected[holds], answer[:200]


def _list_cells():
    cells = []
    for (party, fault), row in CELLS.items():
        for state, holds in zip(STATES, row, strict=True):
            marks = () if (party, fault, state) in OFTEN else pytest.mark.slow
            cells.append(pytest.param(party, fault, state, holds, marks=marks))
    return cells


@pytest.fixture(scope="module")
def running(module_home):
    with System(module_home) as system:
        yield system


@pytest.fixture
def system(running):
    running.repair()
    yield running
    running.hang_up()


@pytest.mark.parametrize(("party", "fault", "state", "holds"), _list_cells())
def test_after_a_fault_the_client_has_what_the_table_says(system, party, fault, state, holds):
    text, bridge_before = f"{party}, {fault}, {state}", system.bridge
    assert system.call("echo", text="before").read() == "before"
    if party == "client":
        _try_client(system, fault, state, holds, text)
    else:
        _try_server(system, party, fault, state, holds, text)
    system.release()
    if party == "bridge" and fault in ENDING and system.bridge is bridge_before:
        system.bridge.wait()
        system.start_bridge()
    _check_recovery(system, party, fault, text)


def _try_server(system, party, fault, state, holds, text):  # noqa: PLR0913, PLR0917 - a cell
    """Let a fault happen to the kernel or the bridge while a call is in a state."""
    if state == "idle":
        apply_fault(system, party, fault)
        if fault in ENDING:
            system.wait_for_end(party)
        if fault == "restarted" and party == "bridge":
            system.start_bridge()
        try:
            call = system.call("echo", text=text)
        except ConnectionRefusedError:
            assert holds is CUT
        else:
            check_answer(holds, call, text)
        return
    call, holder = start_call(system, state, text)
    apply_fault(system, party, fault)
    if fault in ("stopped", "slow", "disk full"):
        system.release()
    check_answer(holds, call, text)
    if holder is not None:
        holder.vanish()


def _try_client(system, fault, state, holds, text):
    """Let a fault happen to the client of a call that is in a state."""
    if state == "idle":
        call, holder = system.call("echo", share=0.7 if fault == "cut" else 1, text=text), None
    else:
        call, holder = start_call(system, state, text)
    assert system.call("ping", text="meanwhile").read() == "meanwhile"
    if holds is NOTHING:
        if fault == "terminated":
            call.socket.close()
        else:
            call.vanish()
    else:
        system.release()
        if fault == "restarted":
            call.vanish()
            call = system.call("echo", text=text)
        check_answer(holds, call, text, slowly=fault != "restarted")
    if holder is not None:
        holder.vanish()


def _check_recovery(system, party, fault, text):
    """Check that both notebooks' tools answer a new client with its own result."""
    assert system.call("ping", text=text).read() == text
    if party == "kernel" and fault in ("killed", "terminated"):
        system.start_kernel()
    elif party == "kernel" and fault == "restarted":
        system.kernel.client.wait_for_ready(timeout=TIMEOUT)
        system.run_cells()

    def answers() -> bool:
        answer = system.call("echo", text=text).read()
        return answer == text

    until(answers)  # a kernel that has come back is linked soon
    assert system.kernel.ok("print(1)").stdout == "1\n"
