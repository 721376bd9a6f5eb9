"""A conversation with a real assistant about a real notebook, for the tests to take part in."""

import itertools
import json
import os
import platform
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assistants import ANSWER, ASSISTANTS, QUESTION, Assistant
from codex_app import CodexApp
from judging_stdio import check_judged, judge_settings
from live import LiveKernel, live_kernel
from model_apis import Received
from npm_packages import find_node
from stand_in import PATIENCE, StandIn, stand_in
from talks import DATA, LOAD, TOOLS, end, make_env, start

from mcp_notebook.clients.known_clients import find_client
from mcp_notebook.clients.servers import build_launch
from mcp_notebook.settings.settings import Settings

MORE_TOOLS = """%%mcp_tool
from mcp_notebook import Context

def plot_rain():
    "Plots the rain, and says what it is."
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots()
    axes.plot([1, 2, 3])
    plt.close(figure)
    return ["the rain", figure]

async def count(ctx: Context) -> str:
    "Counts slowly."
    import asyncio
    for step in range(15):
        ctx.progress(step, 15, f"counted {step}")
        await asyncio.sleep(0.1)
    return f"progress wanted: {ctx.wants_progress}"

async def ask(ctx: Context) -> str:
    "Asks the user."
    if not ctx.can_elicit:
        return "cannot ask"
    answer = await ctx.elicit_async("Remove all?", ["remove", "keep"])
    return f"answered: {answer.data}" if answer.accepted else "not answered"

def learn() -> str:
    "Declares another tool."
    from mcp_notebook import Tool, registry
    registry.add(Tool(name="measure" + "_snow", handler=lambda: "deep", description="The snow."))
    return "learned"

async def hang(path: str) -> str:
    "Waits for ever."
    import asyncio, pathlib
    pathlib.Path(path).touch()
    await asyncio.Event().wait()
"""
SHARED = """%%mcp_tool
def which_notebook() -> str:
    "Tells which notebook this is."
    return "the notebook about {}"
"""
LATE = """%%mcp_tool
def dry_days() -> str:
    "Counts the dry days."
    return "{} dry days"
"""


@dataclass
class Conversation:
    """What the tests of one assistant share."""

    name: str
    assistant: Assistant
    home: Path
    kernel: LiveKernel
    other: LiveKernel
    """Of a second notebook, with a tool of a name that the first one has, too."""
    model: StandIn
    app: CodexApp | None
    _servers: str
    """What the assistant has said about its servers."""

    def call(self, tool: str, /, **arguments: Any) -> Received:
        """Let the model call a tool of the notebook, and return what it is told."""
        return self.model.call(self.assistant.tool.format(tool), **arguments)

    def start_call(self, tool: str, /, **arguments: Any) -> None:
        """Let the model call a tool of the notebook."""
        self.model.start_call(self.assistant.tool.format(tool), **arguments)

    def wait_for_tool(self, name: str) -> None:
        """Let the model call another tool until it has read of this one."""
        deadline = time.monotonic() + PATIENCE
        tries = itertools.count()
        while name not in json.dumps(self.model.turn):
            assert time.monotonic() < deadline, "the model has not heard of the new tool"
            # Some end a conversation in which the same is asked for again and again.
            self.call("greet", name=f"Ada the {next(tries)}.")

    def look_for_tools(self, *names: str) -> None:
        """Let the model look for the notebook's tools, if it must do so before it may call them."""
        if not self.assistant.search:
            return
        deadline = time.monotonic() + PATIENCE
        order = deque(map(self.assistant.tool.format, names))
        while True:
            self.model.call(self.assistant.search, query=f"select:{','.join(order)}")
            if "Greets somebody." in str(self.model.turn):
                break
            order.rotate()  # the server may not have started yet; some do not take the same twice
            assert time.monotonic() < deadline, "the model finds no tools"

    def read_resource(self, address: str, text: str) -> Received:
        """Let the model read a resource until this is in it.

        Some read only what is in their list, which they bring up to date a moment later.
        """
        reader, given = self.assistant.reader, self.assistant.reader_arguments
        if self.assistant.search:
            self.model.call(self.assistant.search, query=f"select:{reader}")
        for number in range(20):
            told = self.model.call(reader, uri=address, **given)
            if text in told.text:
                break
            self.call("greet", name=f"Ada, who waits for the {number}. time")
        return told

    def list_servers(self) -> str:
        """Return what the assistant itself says about its servers, if it can be asked."""
        if self.app is None:
            return self._servers
        return json.dumps(self.app.list_servers())


@dataclass(frozen=True)
class Commands:
    """Starts the assistant as its user would, in an environment with nothing else in it."""

    command: list[str]
    home: Path
    env: dict[str, str]

    def run(self, *arguments: str) -> str:
        """Run a command to its end, and return what it prints."""
        ended = subprocess.run(
            [*self.command, *arguments],
            cwd=self.home / "work",
            env=self.env,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        return ended.stdout

    def start(self, *arguments: str, has_pipes: bool) -> subprocess.Popen[str]:
        """Start it; what it says goes to a file, without pipes."""
        command = [*self.command, *arguments]
        return start(command, self.home, self.home / "work", self.env, has_pipes=has_pipes)


def set_up(assistant: Assistant, home: Path, url: str, modules: Path, *options: str) -> Commands:
    """Set an assistant up with the notebook's server and a model.

    Args:
        assistant: The assistant.
        home: Its home folder.
        url: The address of the model.
        modules: The assistants' packages.
        *options: Those of `mcp-notebook install` for a server that runs already.
    """
    if assistant.write_settings is not None:
        assistant.write_settings(home, url)
    (home / "work").mkdir()
    if assistant.client:
        _install(assistant.client, home, *options)
    else:
        client = find_client("mcp.json")
        assert assistant.write_server is not None
        assistant.write_server(home, client.make_entry(build_launch(client, Settings())))
    if not options:  # else, `judging_proxy` is there
        judge_settings(home)
    node = find_node(modules)
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    program = modules / assistant.program.format(platform=f"{sys.platform}-{machine}")
    env = make_env(home, url, f"{node.parent}:{os.defpath}")
    env |= {name: value.format(url=url) for name, value in assistant.env.items()}
    command = [str(node), str(program)] if program.suffix == ".js" else [str(program)]
    return Commands(command, home, env)


def _install(client: str, home: Path, *options: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mcp_notebook", "install", client, *options],
        cwd=home / "work",
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0, done.stdout


@contextmanager
def conversation(name: str, home: Path, modules: Path) -> Iterator[Conversation]:
    """Start a notebook and an assistant that is asked something, and end both.

    Args:
        name: One of `ASSISTANTS`.
        home: The home folder of both.
        modules: The assistants' packages.
    """
    assistant = ASSISTANTS[name]
    with ExitStack() as stack:
        kernel = stack.enter_context(live_kernel(home, notebook=str(home / "rain.ipynb")))
        kernel.ok(LOAD)
        kernel.ok(TOOLS)
        kernel.ok(DATA)
        kernel.ok(MORE_TOOLS)
        kernel.ok(SHARED.format("rain"))
        other = stack.enter_context(live_kernel(home, notebook=str(home / "snow.ipynb")))
        other.ok(LOAD)
        other.ok(SHARED.format("snow"))
        model = stack.enter_context(stand_in(assistant.api()))
        commands = set_up(assistant, home, model.url, modules)
        # Not while it has a conversation: opencode would make its database twice.
        servers = _list_servers(assistant, commands)
        process = commands.start(*assistant.arguments, has_pipes=assistant.is_app)
        stack.callback(end, process)
        model.watch(process, home / "said")
        app = CodexApp(process, ANSWER) if assistant.is_app else None
        if app is not None:
            app.say(QUESTION)
        yield Conversation(name, assistant, home, kernel, other, model, app, servers)
    check_judged(home)


def _list_servers(assistant: Assistant, commands: Commands) -> str:
    """Let it connect; again on a busy machine, as Gemini CLI waits for five seconds."""
    said = ""
    deadline = time.monotonic() + PATIENCE
    while assistant.listing and time.monotonic() < deadline:
        said = commands.run(*assistant.listing)
        if assistant.connected in said:
            break
    return said
