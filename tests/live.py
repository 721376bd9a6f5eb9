"""Real kernels for tests, started as a frontend would start them."""

import itertools
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path
from typing import Any, Self

import anyio
import pytest
from forked_command import KERNEL, find_pid, list_words
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager

from mcp_notebook.content import Result, Text
from mcp_notebook.discovery.records import Record, list_live_records, read_start_time
from mcp_notebook.wire import content_blocks, frames, messages

TIMEOUT = 60
SOON = 30
"""Seconds: what takes two on a quiet machine, and for ever when it is broken."""


@dataclass
class Output:
    """What a cell printed and showed, and how it ended."""

    stdout: str = ""
    stderr: str = ""
    displays: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None

    @property
    def text(self) -> str:
        """Everything that can be read."""
        shown = [data.get("text/plain", "") for data in self.displays]
        return "\n".join([self.stdout, self.stderr, *shown, self.error or ""])


class LiveKernel:
    """A kernel with a client; `run` runs a cell."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient, home: Path) -> None:
        self.manager = manager
        self.client = client
        self.home = home

    @property
    def pid(self) -> int:
        return find_pid(self.manager.provisioner.pid)

    def start(
        self, code: str, *, cell: str | None = None, deleted: Sequence[str] | None = None
    ) -> str:
        """Start a cell and return the id of its request.

        Args:
            code: What is in the cell.
            cell: Its id, as JupyterLab and VS Code send it; without, as nbclient does.
            deleted: The ids of deleted cells, which only JupyterLab and Notebook 7 send.
        """
        if cell is None and deleted is None:
            return self.client.execute(code, allow_stdin=False, stop_on_error=False)
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "allow_stdin": False,
            # After an error, ipykernel 6 would drop for a moment what comes next.
            "stop_on_error": False,
        }
        metadata = {"cellId": cell} | ({} if deleted is None else {"deletedCells": [*deleted]})
        request = self.client.session.msg("execute_request", content, metadata=metadata)
        self.client.shell_channel.send(request)
        return request["header"]["msg_id"]

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Keep a cell running for the length of the block."""
        release = self.home / "release"
        os.mkfifo(release)
        request = self.start(
            f"print('began', flush=True)\nopen({str(release)!r}).close()\nprint('ended')"
        )
        while "began" not in self.wait_for("stream")["text"]:
            pass
        try:
            yield
        finally:
            opened = os.open(release, os.O_RDWR)  # what the cell's `open` waits for
            assert "ended" in self.finish(request).stdout
            os.close(opened)
            release.unlink()

    def wait_for(self, kind: str) -> dict[str, Any]:
        """Wait for a message of this type on iopub, and return its content."""
        while (message := self.client.get_iopub_msg(timeout=TIMEOUT))["msg_type"] != kind:
            pass
        return message["content"]

    def open_pager(self, code: str) -> str:
        """Run a cell that asks for help (``name?``), and return what the pager shows."""
        request = self.client.execute(code)
        reply = self.client.get_shell_msg(timeout=TIMEOUT)
        while reply["parent_header"].get("msg_id") != request:
            reply = self.client.get_shell_msg(timeout=TIMEOUT)
        return reply["content"]["payload"][0]["data"]["text/plain"]

    def finish(self, request: str) -> Output:
        """Wait until a started cell has ended, and return what it showed."""
        output = Output()
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") != request:
                continue
            content = message["content"]
            kind = message["msg_type"]
            if kind == "stream":
                name = content["name"]
                setattr(output, name, getattr(output, name) + content["text"])
            elif kind in ("display_data", "execute_result"):
                output.displays.append(content["data"])
            elif kind == "error":
                output.error = f"{content['ename']}: {content['evalue']}"
            elif kind == "status" and content["execution_state"] == "idle":
                break
        reply = self.client.get_shell_msg(timeout=TIMEOUT)
        while reply["parent_header"].get("msg_id") != request:
            reply = self.client.get_shell_msg(timeout=TIMEOUT)
        if reply["content"]["status"] == "error" and output.error is None:
            output.error = f"{reply['content']['ename']}: {reply['content']['evalue']}"
        return output

    def run(self, code: str, **request: Any) -> Output:
        """Run a cell to its end; `request` as for `start`."""
        return self.finish(self.start(code, **request))

    def ok(self, code: str, **request: Any) -> Output:
        """Run a cell that must not fail; `request` as for `start`."""
        output = self.run(code, **request)
        assert output.error is None, output.text
        return output

    def insert(self, code: str) -> str:
        """Run a cell, and return the code of the cell that a frontend would insert below it."""
        request = self.start(code)
        reply = self.client.get_shell_msg(timeout=60)
        while reply["parent_header"].get("msg_id") != request:
            reply = self.client.get_shell_msg(timeout=60)
        (payload,) = reply["content"]["payload"]
        assert (payload["source"], payload["replace"]) == ("set_next_input", False)
        return str(payload["text"])

    def set_constants(self, module: str, **constants: float) -> None:
        """Give constants of a module other values: limits of time that tests would wait for."""
        found = f"__import__('importlib').import_module({module!r})"
        self.ok(f"vars({found}).update({constants!r})")


def kernel_env(home: Path) -> dict[str, str]:
    """Return the environment that keeps a process of a test within its own home folder."""
    given = os.environ.items()
    env = {name: value for name, value in given if not name.startswith("MCP_NOTEBOOK")}
    return env | {
        "HOME": str(home),
        "IPYTHONDIR": str(home / ".ipython"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "PYTHON_HISTORY": str(home / "history"),
    }


@contextmanager
def live_kernel(
    home: Path,
    *,
    notebook: str | None = None,
    env: dict[str, str] | None = None,
    is_forked: bool = True,
) -> Iterator[LiveKernel]:
    """Start a kernel, and end it.

    Args:
        home: Its home folder.
        notebook: The notebook that it is for.
        env: Variables for it.
        is_forked: Whether to start it in a fraction of the time (`forked_command`).
    """
    manager = KernelManager(kernel_name="python3", transport="ipc", ip=str(home / "ipc"))
    if is_forked:
        words = list_words("-f", "{connection_file}", module=KERNEL, like=KERNEL)
        manager.kernel_spec.argv = words
    (home / "tmp").mkdir(
        exist_ok=True
    )  # what is left there by a kernel that is killed goes with it
    env = kernel_env(home) | {"TMPDIR": str(home / "tmp")} | (env or {})
    if notebook is not None:
        env["JPY_SESSION_NAME"] = notebook
    manager.start_kernel(env=env, cwd=str(home), extra_arguments=["--HistoryManager.enabled=False"])
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=TIMEOUT)
        yield LiveKernel(manager, client, home)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


def kernel_with(*cells: str, kernel: str = "shared_kernel") -> Any:
    """Return a module's fixture: the kernel that its tests share, after these cells.

    Args:
        *cells: What has run in it.
        kernel: The fixture of the kernel.
    """

    @pytest.fixture(scope="module")
    def run_cells(request: pytest.FixtureRequest) -> LiveKernel:
        shared = request.getfixturevalue(kernel)
        for cell in cells:
            shared.ok(cell)
        return shared

    return run_cells


class Link:
    """The bridge's end of the link, spoken by hand and synchronously."""

    def __init__(self, record: Record, hello: messages.Hello | None = None) -> None:
        self.record = record
        if record.socket is not None:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(record.socket)
        else:
            self.socket = socket.create_connection(("127.0.0.1", record.port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as asyncio does
        self.socket.settimeout(TIMEOUT)
        self.ids = itertools.count(1)
        self.send(hello or messages.Hello(version="test", token=record.token))
        self.welcome = self.receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def send(self, message: messages.AnyMessage) -> None:
        self.socket.sendall(b"".join(frames.encode(message)))

    def receive(self) -> Any:
        """Return the next message; a `Returned` as its result; None at the end."""
        parser, frame = frames.FrameParser(), None
        while frame is None:
            piece = self.socket.recv(parser.missing)
            if not piece:
                return None
            frame = parser.feed(piece)
        message, attachments = frame
        if isinstance(message, messages.Returned):
            return content_blocks.unpack_result(message, attachments)
        return message

    def start(
        self,
        tool: str,
        /,
        *,
        progress: bool = False,
        **arguments: Any,
    ) -> int:
        """Send a call and return its id."""
        call_id = next(self.ids)
        self.send(messages.Call(id=call_id, tool=tool, arguments=arguments, progress=progress))
        return call_id

    def receive_until(self, is_last: Callable[[Any], bool]) -> list[Any]:
        """Return the next messages, up to the first that fits."""
        received = [self.receive()]
        while not is_last(received[-1]):
            assert received[-1] is not None, "the kernel ended the conversation"
            received.append(self.receive())
        return received

    def result(self) -> Result:
        """Return the next result, skipping what else comes."""
        return self.receive_until(lambda message: isinstance(message, Result))[-1]

    def call(self, tool: str, /, **arguments: Any) -> Result:
        """Call a tool and wait for its result."""
        self.start(tool, **arguments)
        return self.result()


def until(
    condition: Callable[[], Any], describe: Callable[[], Any] = str, *, every: float = 0.002
) -> Any:
    """Wait for what no event tells, as of another process.

    Args:
        condition: What has to become true.
        describe: Says how it is when it has not become true for a minute.
        every: Seconds between two looks.

    Returns:
        What the condition returned.
    """
    limit = time.monotonic() + TIMEOUT
    while not (fulfilled := condition()):
        assert time.monotonic() < limit, describe()
        time.sleep(every)
    return fulfilled


async def soon(condition: Callable[[], Any]) -> Any:
    """As `until`, on a loop that goes on meanwhile; the condition may be a coroutine function."""
    with anyio.fail_after(TIMEOUT):
        while not (fulfilled := condition()) or (
            isawaitable(fulfilled) and not (fulfilled := await fulfilled)
        ):
            await anyio.lowlevel.checkpoint()
    return fulfilled


def wait_for_ends(pids: Iterable[int]) -> None:
    """Wait until none of these processes runs."""
    for pid in pids:
        until(lambda pid=pid: read_start_time(pid) is None)


def find_free_port() -> int:
    """Return a port of the loopback interface on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def record_of(kernel: LiveKernel) -> Record:
    """Return the record that a kernel has published."""
    (record,) = list_live_records(kernel.home / ".mcp-notebook" / "kernels")
    return record


def tools_of(kernel: LiveKernel) -> dict[str, messages.ToolInfo]:
    """Return the tools that a kernel offers to bridges, by name."""
    with Link(record_of(kernel)) as link:
        return {tool.name: tool for tool in link.welcome.tools if tool.kind == "tool"}


def text_of(result: Result) -> str:
    """Return all text of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, Text))
