"""The servers that are measured: how each is started, and how one connects to it."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from live import LiveKernel, kernel_env, live_kernel

from comparison.environments import python_of
from comparison.raw_clients import PATIENCE_S, HttpLine, Hung, Line, StdioLine

PROGRAMS = Path(__file__).parents[1] / "programs"
TOKEN = "token-of-the-benchmarks-0123456789abcdef"
TOKEN_NAME = "MCP_NOTEBOOK_TOKEN"
NO_LIMITS = {"MCP_NOTEBOOK_LIMITS": str(Path(__file__).with_name("no_limits.toml"))}
"""What lets large results through as they are, and benchmarks ask without a pause."""
AT_HOME = {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1"}
"""What keeps gradio from telling anybody that it was started."""
NOTEBOOK = """
import sys
sys.path.insert(0, {programs!r})
from same_tools import SIDE, add, ask, document, fillers, length, png, table
from mcp_notebook import mcp_prompt, mcp_resource, mcp_tool
for tool in [add, length, *fillers({tools} - 4)]:
    mcp_tool(tool)
mcp_prompt(ask)
mcp_resource("data://document")(document)

@mcp_tool
def picture_500kb():
    "Draw a picture of 500 KB."
    return png(SIDE)

@mcp_tool(output_schema={{"type": "array"}})
def table_1mb():
    "Return a table of 1 MB."
    return table()
"""


@dataclass(frozen=True, order=True)
class Way:
    """A column of the table: which server, over what, in which era."""

    server: str
    transport: str
    era: str

    def __str__(self) -> str:
        return f"{self.server} {self.transport} {self.era}"


class Server(ABC):
    """A server with a number of tools; `close` ends all that it has started."""

    name: str
    transports: tuple[str, ...] = ("http", "stdio")
    eras: tuple[str, ...] = ("modern", "legacy")

    def __init__(self, tools: int) -> None:
        self.tools = tools
        self.stack = ExitStack()
        self.process: subprocess.Popen[str] | None = None
        self._url = ""

    @classmethod
    def ways(cls) -> list[Way]:
        """Return what it can be measured over."""
        return [Way(cls.name, over, era) for over in cls.transports for era in cls.eras]

    def line(self, way: Way) -> Line:
        """Return a new connection; over stdio, to a new process."""
        if way.transport == "stdio":
            return StdioLine(way.era, *self.command())
        return HttpLine(way.era, self.url(), self.headers())

    def url(self) -> str:
        """Return the address over HTTP; serve there if nobody has asked yet."""
        if not self._url:
            self._url = self.serve()
        return self._url

    @abstractmethod
    def command(self) -> tuple[list[str], dict[str, str]]:
        """Return what starts it over stdio: command and environment."""

    @abstractmethod
    def serve(self) -> str:
        """Start `process` over HTTP, and return the address."""

    def headers(self) -> list[str]:
        """Return what its clients have to send along."""
        return []

    def close(self) -> None:
        """End it."""
        self.stack.close()


class Headless(Server):
    """This project: a notebook file that the bridge runs."""

    name = "mcp-notebook"
    notebooks: tuple[str, ...] = ("tools.ipynb",)
    limits = NO_LIMITS

    def __init__(self, tools: int) -> None:
        super().__init__(tools)
        self.home = Path(tempfile.mkdtemp(prefix="mcpnb-"))
        self.stack.callback(shutil.rmtree, self.home, ignore_errors=True)
        cells = [
            {"cell_type": "code", "id": f"c{i}", "metadata": {}, "execution_count": None,
             "outputs": [], "source": source}
            for i, source in enumerate(self.cells())
        ]  # fmt: skip
        kernel = {"name": "python3", "display_name": "Python 3"}
        notebook = {
            "cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5
        }  # fmt: skip
        (self.home / "tools.ipynb").write_text(json.dumps(notebook), encoding="utf-8")

    def cells(self) -> list[str]:
        """Return what is in the notebook."""
        return ["%load_ext mcp_notebook", NOTEBOOK.format(programs=str(PROGRAMS), tools=self.tools)]

    def command(self, *how: str) -> tuple[list[str], dict[str, str]]:
        """Return what starts a bridge."""
        notebooks = [str(self.home / name) for name in self.notebooks]
        command = [sys.executable, "-m", "mcp_notebook", *(how or ["stdio"]), *notebooks]
        return command, kernel_env(self.home) | self.limits | {TOKEN_NAME: TOKEN}

    def serve(self) -> str:
        """Start a bridge over HTTP."""
        self.process = start_process(*self.command("serve", "--port", "0"), self.stack)
        return read_address(self.process)

    def headers(self) -> list[str]:
        """Return the token's header."""
        return [f"Authorization: Bearer {TOKEN}"]


class Ours(Headless):
    """This project: a live kernel with the tools, and bridges."""

    notebooks = ()

    def __init__(self, tools: int) -> None:
        super().__init__(tools)
        self.kernel: LiveKernel = self.stack.enter_context(live_kernel(self.home, env=self.limits))
        for cell in self.cells():
            self.kernel.ok(cell)


class Program(Server):
    """A program of `programs/`, in an environment of its own."""

    program: str
    environment: str | None = None
    path = "/mcp"

    def command(self, where: str = "stdio") -> tuple[list[str], dict[str, str]]:
        """Return what starts it."""
        python = python_of(self.environment) if self.environment else sys.executable
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return [python, str(PROGRAMS / self.program), str(self.tools), where], env | AT_HOME

    def serve(self) -> str:
        """Start it over HTTP."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.process = start_process(*self.command(str(port)), self.stack)
        wait_for_port(port, self.process)
        return f"http://127.0.0.1:{port}{self.path}"


class FastMCP(Program):
    """FastMCP, in one process, as `pip install fastmcp` gives it."""

    name, environment, program = "FastMCP", "FastMCP", "fastmcp_server.py"


class Sdk(Program):
    """The SDK's low-level server, in one process, tuned."""

    name, program = "SDK", "sdk_server.py"


class Gradio(Program):
    """gradio's MCP server, in one process."""

    name, environment, program = "gradio", "gradio", "gradio_server.py"
    path, transports, eras = "/gradio_api/mcp/", ("http",), ("legacy",)


SERVERS: dict[str, type[Server]] = {kind.name: kind for kind in (Ours, FastMCP, Sdk, Gradio)}
OURS, REFERENCE = Ours.name, FastMCP.name


def start_process(
    command: list[str], env: dict[str, str], stack: ExitStack
) -> "subprocess.Popen[str]":
    """Start a process that ends with the stack."""
    process = subprocess.Popen(
        command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip

    def end() -> None:
        process.terminate()
        process.wait(PATIENCE_S)
        assert process.stderr is not None
        process.stderr.close()

    stack.callback(end)
    return process


def read_address(process: "subprocess.Popen[str]") -> str:
    """Return the address that our bridge prints when it serves."""
    assert process.stderr is not None
    text = ""
    for line in process.stderr:
        text += line
        if match := re.search(r"http://[\d.]+:\d+/mcp", line):
            return match.group()
    raise Hung(f"{process.args!r} ended: {text}")


def wait_for_port(port: int, process: "subprocess.Popen[str]") -> None:
    """Wait until somebody listens."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.005)
        else:
            return
    process.kill()
    assert process.stderr is not None
    raise Hung(f"{process.args!r} does not listen: {process.stderr.read()}")
