"""A real VS Code in a browser: its server, and what the tests do in one window of it."""

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from assistant import PROGRAM, Assistant
from looks import run_axe
from mcp import Client, StdioServerParameters
from npm_packages import find_node
from playwright.sync_api import Frame, Locator, Page, expect
from playwright.sync_api import TimeoutError as WaitedTooLong

from mcp_notebook.clients.editor_extension import EXTENSION
from mcp_notebook.discovery.records import list_live_records

SOON = 180_000
"""Milliseconds: what takes some seconds on a quiet machine, and minutes on one that tests share."""
SHORT = 10_000
"""Milliseconds for what needs another try after them."""
_CONTROLLER = Path(__file__).parent / "controller"
_COMMAND = "Meta" if sys.platform == "darwin" else "Control"
_SETTINGS = {
    "chat.disableAIFeatures": False,
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "workbench.startupEditor": "none",
    "workbench.editorAssociations": {"*.ipynb": "jupyter-notebook"},
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "remote.autoForwardPorts": False,
    "extensions.ignoreRecommendations": True,
    "files.simpleDialog.enable": True,
}


class CodeServer:
    """A server of windows of VS Code, with the extension and the tests' kernels.

    Args:
        modules: The ``node_modules`` with the server.
        home: Its home folder, with mcp-notebook's own in it.
    """

    def __init__(self, modules: Path, home: Path) -> None:
        self.home = home
        self._words = [
            str(find_node(modules)),
            str(modules / "code-server" / "out" / "node" / "entry.js"),
            f"--user-data-dir={home / 'data'}",
            f"--extensions-dir={home / 'extensions'}",
        ]
        self.user = home / "data" / "User"
        """The folder of the user's settings."""
        self._env = os.environ | {
            "HOME": str(home),
            "TMPDIR": str(home),
            "MCP_NOTEBOOK_HOME": str(home / ".mcp-notebook"),
            "TESTS_PYTHON": sys.executable,
        }

    def install(self, vsix: Path) -> None:
        """Install an extension."""
        self._run("--install-extension", str(vsix))

    def list_extensions(self) -> list[str]:
        """Return the extensions that are installed."""
        return self._run("--list-extensions").splitlines()

    def write_command(self, file: Path) -> None:
        """Write the command by which its users would call it."""
        file.write_text(f'#!/bin/sh\nexec {shlex.join(self._words)} "$@"\n', encoding="utf-8")
        file.chmod(0o755)

    def _run(self, *words: str) -> str:
        return subprocess.run(
            [*self._words, *words], env=self._env, check=True, capture_output=True, text=True
        ).stdout

    @contextlib.contextmanager
    def running(self) -> Iterator[str]:
        """Serve windows, and return the address."""
        self.user.mkdir(parents=True, exist_ok=True)
        settings = json.dumps(_SETTINGS)
        (self.user / "settings.json").write_text(settings, encoding="utf-8")
        self.install(pack(_CONTROLLER, self.home / "controller.vsix"))
        self.install(EXTENSION)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [
            *self._words,
            f"--bind-addr=127.0.0.1:{port}",
            "--auth=none",
            "--disable-telemetry",
            "--disable-update-check",
            "--disable-workspace-trust",
        ]
        with (self.home / "log").open("w") as log:
            process = subprocess.Popen(
                words, env=self._env, stdout=log, stderr=log, start_new_session=True
            )
            try:
                wait_for(port, process)
                yield f"http://127.0.0.1:{port}/"
            finally:
                # With the hosts of extensions, which wait for their windows to come back.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(30)

    def end_kernels(self) -> None:
        """End all kernels, as if they had crashed."""
        for record in list_live_records(self.home / ".mcp-notebook" / "kernels"):
            os.kill(record.pid, signal.SIGKILL)


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server listens."""
    ends = time.monotonic() + SOON / 1000
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        assert process.poll() is None
        assert time.monotonic() < ends, "VS Code's server does not start"
        time.sleep(0.05)


def pack(folder: Path, file: Path) -> Path:
    """Pack an extension, as vsce would."""
    described = json.loads((folder / "package.json").read_text("utf-8"))
    manifest = f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
<Metadata><Identity Language="en-US" Id="{described["name"]}" Version="{described["version"]}"
Publisher="{described["publisher"]}"/><DisplayName>{described["displayName"]}</DisplayName>
<Description/></Metadata>
<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation><Dependencies/>
<Assets><Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json"/></Assets>
</PackageManifest>"""
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("extension.vsixmanifest", manifest)
        for path in folder.iterdir():
            if path.is_file():
                packed.write(path, f"extension/{path.name}")
    return file


class Window:
    """One window of VS Code, with a folder of notebooks."""

    def __init__(self, page: Page, address: str, folder: Path) -> None:
        self.page = page
        self.folder = folder
        page.goto(f"{address}?folder={folder}")
        expect(page.locator(".monaco-workbench")).to_be_visible(timeout=SOON)

    def _choose(self, open_list: Callable[[], None], typed: str, text: str) -> None:
        """Open a list, type something, and choose what has a text."""
        row = self.page.locator(".quick-input-list .monaco-list-row").filter(has_text=text).first
        ends = time.monotonic() + SOON / 1000
        while True:
            open_list()
            try:
                self.page.locator(".quick-input-widget input").first.fill(typed, timeout=SHORT)
                return row.click(timeout=SHORT)
            except WaitedTooLong:  # VS Code closes the list when something else gets the focus
                assert time.monotonic() < ends, f"{text!r} cannot be chosen"

    def run_command(self, title: str) -> None:
        """Run a command by the palette."""
        self._choose(lambda: self.page.keyboard.press("F1"), f">{title}", title)

    def open(self, name: str, *cells: str) -> None:
        """Open a new notebook with these cells."""
        self.write(name, *cells)
        self.show(name)

    def write(self, name: str, *cells: str) -> None:
        """Write a notebook."""
        content = {
            "cells": [
                {
                    "id": f"cell{index}",
                    "cell_type": "code",
                    "source": source,
                    "metadata": {},
                    "outputs": [],
                    "execution_count": None,
                }
                for index, source in enumerate(cells)
            ],
            "metadata": {"language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        (self.folder / name).write_text(json.dumps(content), encoding="utf-8")

    def show(self, name: str) -> None:
        """Open a file by its name."""
        self._choose(lambda: self.page.keyboard.press(f"{_COMMAND}+p"), name, name)
        expect(self.page.locator(".notebookOverlay").last).to_be_visible(timeout=SOON)

    def run_all(self) -> None:
        """Run all cells, once there is a kernel."""
        expect(self.page.get_by_text("Test kernel").first).to_be_visible(timeout=SOON)
        self.page.locator(".notebook-toolbar-container").get_by_text("Run All").first.click()

    @property
    def panel(self) -> "Panel":
        """The side panel, which is opened if it is not."""
        if self._find_panel() is None:
            self.run_command("View: Show Notebook tools (MCP)")
        ends = time.monotonic() + SOON / 1000
        while (frame := self._find_panel()) is None:
            assert time.monotonic() < ends, "there is no panel"
            self.page.wait_for_timeout(50)
        return Panel(frame)

    def _find_panel(self) -> Frame | None:
        for frame in self.page.frames:
            with contextlib.suppress(Exception):
                if frame.query_selector(".jp-mcp-panel"):
                    return frame
        return None

    @property
    def status_bar(self) -> Locator:
        """The status bar."""
        return self.page.locator(".statusbar")

    def notification(self, text: str) -> Locator:
        """Return a notification with a text, as it comes up or in the list of all."""
        return self.page.locator(".notification-list-item").filter(has_text=text)

    def show_notifications(self) -> None:
        """Show also the notifications that have gone away by themselves."""
        self.run_command("Notifications: Show Notifications")

    def use_theme(self, theme: str) -> None:
        """Choose a theme, and wait until the panel has it."""
        panel = self.panel
        self._choose(lambda: self.run_command("Preferences: Color Theme"), theme, theme)
        body = panel.frame.locator("body")
        expect(body).to_have_attribute("data-vscode-theme-name", theme, timeout=SOON)

    def list_servers(self) -> list[str]:
        """Return the servers that *MCP: List Servers* shows, once there is one."""
        self.run_command("MCP: List Servers")
        rows = self.page.locator(".quick-input-list .monaco-list-row")
        expect(rows.nth(1)).to_be_visible(timeout=SOON)
        names = [row.inner_text().split("\n")[0].strip() for row in rows.all()]
        self.page.keyboard.press("Escape")
        return [re.sub(r"(Stopped|Running)$", "", name) for name in names[1:]]

    def start_server(self, name: str) -> None:
        """Start a server, as *MCP: List Servers* does."""
        self.run_command("MCP: List Servers")
        rows = self.page.locator(".quick-input-list .monaco-list-row")
        rows.filter(has_text=name).first.click()
        rows.filter(has_text="Start Server").first.click()

    def wait_for_tool(self, name: str, *, is_there: bool = True) -> None:
        """Wait until VS Code's own list has a tool, or has it no longer."""
        ends = time.monotonic() + SOON / 1000
        while is_there != any(each.endswith(f"_{name}") for each in self._list_tools()):
            assert time.monotonic() < ends, f"{name} is{' not' if is_there else ''} in the list"

    def _list_tools(self) -> list[str]:
        (self.folder / "tools.json").unlink(missing_ok=True)
        self.run_command("Tests: List Tools")
        return list(self._read("tools.json"))

    def call(self, name: str, **arguments: Any) -> None:
        """Have VS Code's own client call a tool."""
        call = json.dumps({"name": name, "input": arguments})
        (self.folder / "call.json").write_text(call, encoding="utf-8")
        self.run_command("Tests: Invoke Tool")

    def start_agent(self) -> None:
        """Have the chat answered by Copilot's agent with a model that stands in for a real one."""
        self.run_command("Tests: Start the Agent")
        self._read("agent.json")

    def ask_agent(self, text: str) -> Locator:
        """Ask the agent, and return the chat."""
        self.run_command("Chat: Open Chat (Agent)")
        chat = self.page.locator(".interactive-session")
        expect(chat.get_by_text("Stand-in")).to_be_visible(timeout=SOON)
        chat.locator(".interactive-input-part .monaco-editor").first.click()
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")
        return chat

    def read_result(self) -> Any:
        """Return the result of that call."""
        return self._read("result.json")

    def _read(self, name: str) -> Any:
        ends = time.monotonic() + SOON / 1000
        while not (self.folder / name).exists():
            assert time.monotonic() < ends, f"there is no {name}"
            self.page.wait_for_timeout(50)
        return json.loads((self.folder / name).read_text("utf-8"))


class Panel:
    """The side panel of a window."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.place = frame.locator(".jp-mcp-panel")

    def section(self, title: str) -> Locator:
        """Return a part of it."""
        return self.place.get_by_role("region", name=re.compile(rf"^{title}( \d+)?$"))

    def button(self, name: str) -> Locator:
        """Return a button."""
        return self.place.get_by_role("button", name=name, exact=True)

    def answer(self, name: str) -> None:
        """Answer a question by one of its buttons, which take no click that came too early."""
        expect(self.button(name)).not_to_have_attribute("aria-disabled", "true", timeout=SOON)
        self.button(name).click()

    def find_violations(self) -> list[str]:
        """Return what Axe finds in it."""
        return run_axe(self.frame, "#root")

    def expect_text(self, text: str | re.Pattern[str], *, section: str | None = None) -> None:
        """Wait until it says something."""
        place = self.place if section is None else self.section(section)
        expect(place).to_contain_text(text, timeout=SOON)


class StdioAssistant(Assistant):
    """An assistant outside of VS Code, which starts a bridge of its own and cannot ask its user."""

    def __init__(self, home: Path) -> None:
        super().__init__("", "")
        self._server = StdioServerParameters(
            command=sys.executable,
            args=["-P", "-m", "mcp_notebook", "stdio"],
            env={"MCP_NOTEBOOK_HOME": str(home / ".mcp-notebook"), "HOME": str(home)},
        )

    def _start(self, act: Callable[[Client], Awaitable[Any]], **options: Any) -> Future[Any]:
        async def connect() -> Any:
            async with Client(self._server, client_info=PROGRAM, **options) as client:
                return await act(client)

        return self._portal.start_task_soon(connect)
