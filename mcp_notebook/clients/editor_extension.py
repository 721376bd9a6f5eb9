"""The extension for VS Code and its relatives: where it is, and how their commands install it.

Runs in the process of the command, which starts the editors' own commands.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from mcp_notebook.clients.client import Machine
from mcp_notebook.errors import ClientError

EXTENSION = Path(__file__).with_name("mcp-notebook.vsix")
"""The packed extension, which ``vscode/`` is built to."""
IDENTIFIER = "mcp-notebook.mcp-notebook"
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "vscode": ("code", "codium", "code-server"),
    "cursor": ("cursor",),
    "windsurf": ("windsurf",),
}
"""The commands of editors that take the extension, by the names of the clients."""
BY_HAND = (
    "For the side panel, run 'Extensions: Install from VSIX...' in the command palette, "
    f"and choose {EXTENSION}."
)
_LIMIT = 120
"""Seconds for one command of an editor, which may start the editor's window."""


def install_extension(client: str, machine: Machine) -> list[str]:
    """Install the extension wherever an editor's command is; return the commands.

    Raises:
        ClientError: A command failed.
    """
    commands = _find_commands(client, machine)
    for name, file in commands.items():
        done = _run(file, machine, "--install-extension", str(EXTENSION), "--force")
        if done.returncode != 0:
            reason = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise ClientError(f"`{name} --install-extension` failed: {''.join(reason)}")
    return [*commands]


def remove_extension(client: str, machine: Machine) -> list[str]:
    """Remove the extension wherever it is installed; return the commands.

    Raises:
        ClientError: A command cannot run, or takes too long.
    """
    return [
        name
        for name, file in _find_commands(client, machine).items()
        if _run(file, machine, "--uninstall-extension", IDENTIFIER).returncode == 0
    ]


def _find_commands(client: str, machine: Machine) -> dict[str, str]:
    """Return the files of the commands that are on the PATH."""
    path = machine.env.get("PATH", os.defpath)
    files = {name: shutil.which(name, path=path) for name in COMMANDS.get(client, ())}
    return {name: file for name, file in files.items() if file}


def _run(file: str, machine: Machine, *words: str) -> subprocess.CompletedProcess[str]:
    """Run an editor's command.

    Raises:
        ClientError: It cannot run, or takes too long.
    """
    try:
        return subprocess.run(  # noqa: S603 - the editor's own command
            [file, *words],
            env=dict(machine.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=_LIMIT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClientError(f"`{file}` did not run: {error}.") from None
