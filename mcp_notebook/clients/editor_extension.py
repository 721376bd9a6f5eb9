"""The extension for VS Code and its relatives: where it is, and how their commands install it.

Runs in the process of the command, which starts the editors' own commands.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
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
    "To install the panel by hand, run *Extensions: Install from VSIX...* in the command palette, "
    f"and choose {EXTENSION}."
)
_LIMIT = 120
"""Seconds for one command of an editor, which may start the editor's window."""


def install_extension(client: str, machine: Machine) -> Iterator[str]:
    """Install the extension where an editor's command is; yield the names of the commands.

    Raises:
        ClientError: A command failed.
    """
    return _run(client, machine, "--install-extension", str(EXTENSION), "--force")


def remove_extension(client: str, machine: Machine) -> Iterator[str]:
    """Remove the extension where it is installed; yield the names of the commands.

    Raises:
        ClientError: A command failed.
    """
    return _run(client, machine, "--uninstall-extension", IDENTIFIER)


def _run(client: str, machine: Machine, *words: str) -> Iterator[str]:
    path = machine.env.get("PATH", os.defpath)
    for name in COMMANDS.get(client, ()):
        command = shutil.which(name, path=path)
        if command is None:
            continue
        try:
            done = subprocess.run(  # noqa: S603 - the editor's own command
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
        if done.returncode == 0:
            yield name
        elif "not installed" not in done.stderr + done.stdout:
            reason = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise ClientError(f"`{name} {words[0]}` failed: {''.join(reason)} {BY_HAND}")
