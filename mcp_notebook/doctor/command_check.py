"""Checks a command in a client's settings by starting it as the client does.

Runs on the command's event loop. The started process ends with the check.
"""

import os
import re
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from mcp_notebook._version import __version__
from mcp_notebook.clients.client import Machine
from mcp_notebook.doctor.configured_servers import ConfiguredServer
from mcp_notebook.doctor.findings import Finding, approve, complain, note
from mcp_notebook.doctor.open_notebooks import (
    DECLARE_ONE,
    OPEN_ONE,
    ask_notebooks,
    describe_failures,
    list_names,
    list_open_records,
)
from mcp_notebook.doctor.probes import BARE_PATH, Answer, ask_command
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.missing_tools import RESERVED_NAMES, RUN_NOTEBOOK
from mcp_notebook.text.wording import count

_MISSING_MODULE = re.compile(r"No module named '?mcp_notebook")
_LAST_LINES = 3
"""Last lines of a failed command's output that are shown."""


async def check_command(
    server: ConfiguredServer, settings: Settings, machine: Machine
) -> list[Finding]:
    """Start the command of an entry, and return what is right and wrong about it.

    Args:
        server: The entry.
        settings: The settings of this command.
        machine: The machine that the client runs on.
    """
    problem = _find_missing_program(server, machine)
    if problem is not None:
        return [problem]
    answer = await ask_command(
        server.words, server.env, server.find_folder(machine), server.start_limit
    )
    if answer.error is not None:
        return [_explain_failure(server, answer)]
    findings = [*_compare_versions(server, answer)]
    if server.arguments[:1] == ("stdio",):
        return [*findings, *await _describe_tools(server, answer, settings, machine)]
    if not answer.tools:
        step = (
            "Open a notebook with tools there, or start its kernel. `%mcp status` lists the tools."
        )
        return [*findings, note("The server answers but has no tools now.", step)]
    return [*findings, _approve_tools(answer)]


def _find_missing_program(server: ConfiguredServer, machine: Machine) -> Finding | None:
    """Check that a command and its folder exist, before starting it."""
    command = server.words[0]
    folder = server.find_folder(machine)
    if not folder.is_dir():
        return complain(
            f"The entry starts the server in {folder}, which does not exist.",
            f"Fix or remove `cwd` in {server.file}.",
        )
    if os.path.dirname(command):  # noqa: PTH120 - Path drops "./"
        if (folder / command).is_file():
            return None
        return complain(
            f"Its command {command} does not exist. The environment was probably removed or moved.",
            "In the environment where mcp-notebook is now installed, run "
            f"{server.format_repair()}.",
        )
    if shutil.which(command, path=server.env.get("PATH", BARE_PATH)) is not None:
        return None
    there = shutil.which(command, path=machine.env.get("PATH"))
    place = f" Your shell finds it as {there}." if there else ""
    return complain(
        f"Its command {command!r} is not on the PATH of desktop programs.{place}",
        f"{server.format_repair()} writes the full path.",
    )


def _explain_failure(server: ConfiguredServer, answer: Answer) -> Finding:
    """Explain why a started command listed no tools."""
    command = shlex.join(server.words)
    output = "\n".join(answer.lines[-_LAST_LINES:])
    if answer.is_late:
        member = server.client.start_member
        place = f"`{member[0]}` in {server.file}" if member else "see its documentation"
        return complain(
            f"It did not list its tools within {server.start_limit:g} s, the timeout of "
            f"{server.client.title}." + (f" Its output: {output}" if output else ""),
            f"Run `{command}` in a terminal to see what it waits for. If it runs notebooks, "
            f"raise the client's timeout ({place}), or open them in Jupyter and remove them here.",
        )
    if _MISSING_MODULE.search(output):
        return complain(
            f"{server.words[0]} no longer has mcp-notebook.",
            f"Run {server.format_repair()} to start this one, {sys.executable}.",
        )
    reason = output or f"{answer.error}"
    return complain(
        f"Its command starts but lists no tools: {reason}",
        f"Fix that and check again. The command is `{command}`.",
    )


def _compare_versions(server: ConfiguredServer, answer: Answer) -> list[Finding]:
    if server.arguments[:1] != ("stdio",) or answer.version in (None, __version__):
        return []
    return [
        complain(
            f"It starts mcp-notebook {answer.version} ({server.words[0]}), but this is "
            f"{__version__}.",
            f"Run {server.format_repair()} to start this one, or upgrade the older one.",
        )
    ]


async def _describe_tools(
    server: ConfiguredServer, answer: Answer, settings: Settings, machine: Machine
) -> list[Finding]:
    """Return the findings about the tools that a ``stdio`` command lists."""
    tools = [
        name
        for name in answer.tools
        if name not in RESERVED_NAMES or name == RUN_NOTEBOOK  # which stands for a folder's tools
    ]
    findings = [_approve_tools(answer)] if tools else []
    if _names_notebooks(server, server.find_folder(machine)):
        return findings or [_complain_about_nothing(server, "The notebooks that it runs declare")]
    home = server.find_home(machine)
    if not _is_same(home, settings.home) and list_open_records(settings.home):
        variable = f"MCP_NOTEBOOK_HOME={settings.home}"
        return [
            *findings,
            complain(
                f"It looks for open notebooks in {home}, but yours are in {settings.home}.",
                f"With {variable} set, run {server.format_repair()}; or unset the variable where "
                "Jupyter is started.",
            ),
        ]
    notebooks = await ask_notebooks(replace(settings, home=home))
    findings += describe_failures(notebooks)
    if tools or findings:
        return findings
    starts = approve(f"Its command starts, in {answer.seconds:.1f} s.", ())
    if not notebooks.number:
        step = f"{OPEN_ONE} If one is open, compare its home folder, shown by `%mcp status`."
        text = f"It has no tools now, because no notebook is open (searched in {home})."
        return [starts, note(text, step)]
    if not any(notebooks.tools.values()):
        names = ", ".join(notebooks.tools)
        text = f"It has no tools now, because the open notebooks have none: {names}."
        return [starts, note(text, DECLARE_ONE)]
    return [_complain_about_nothing(server, "The entry's options allow")]


def _names_notebooks(server: ConfiguredServer, folder: Path) -> bool:
    """Return whether a command that starts in this folder runs notebooks or serves folders."""
    words = server.arguments[1:]
    return any(
        word.endswith(".ipynb") or (folder / Path(word).expanduser()).is_dir() for word in words
    )


def _approve_tools(answer: Answer) -> Finding:
    number = count(len(answer.tools), "tool")
    return approve(
        f"Its command starts and lists {number} in {answer.seconds:.1f} s: "
        f"{list_names(answer.tools)}.",
        answer.tools,
    )


def _complain_about_nothing(server: ConfiguredServer, who: str) -> Finding:
    command = shlex.join(["mcp-notebook", *server.arguments])
    return complain(
        f"It starts but has no tools. {who} none.",
        f"{DECLARE_ONE} `mcp-notebook list` shows all tools. The entry starts `{command}`.",
    )


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
