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
    "For the side panel, run *Extensions: Install from VSIX...* in the command palette, "
    f"and choose {EXTENSION}."
)
_LIMIT = 120
"""Seconds for one command of an editor, which may start the editor's window."""


def find_commands(client: str, machine: Machine) -> list[str]:
    """Return the commands that are on the PATH."""
    path = machine.env.get("PATH", os.defpath)
    return [name for name in COMMANDS.get(client, ()) if shutil.which(name, path=path)]


def install_extension(client: str, machine: Machine) -> list[str]:
    """Install the extension wherever an editor's command is; return the commands.

    Raises:
        ClientError: A command failed.
    """
    names = find_commands(client, machine)
    for name in names:
        done = _run(name, machine, "--install-extension", str(EXTENSION), "--force")
        if done.returncode != 0:
            reason = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise ClientError(f"`{name} --install-extension` failed: {''.join(reason)} {BY_HAND}")
    return names


def remove_extension(client: str, machine: Machine) -> list[str]:
    """Remove the extension wherever it is installed; return the commands."""
    names = find_commands(client, machine)
    return [
        name
        for name in names
        if _run(name, machine, "--uninstall-extension", IDENTIFIER).returncode == 0
    ]


def _run(name: str, machine: Machine, *words: str) -> subprocess.CompletedProcess[str]:
    """Run an editor's command.

    Raises:
        ClientError: It cannot run, or takes too long.
    """
    command = shutil.which(name, path=machine.env.get("PATH", os.defpath))
    assert command is not None
    try:
        return subprocess.run(  # noqa: S603 - the editor's own command
            [command, *words],
            env=dict(machine.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=_LIMIT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClientError(f"`{name}` did not run: {error}. {BY_HAND}") from None
