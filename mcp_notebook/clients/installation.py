"""Adds a server to a client's settings file, and removes it, with a backup.

Runs in the process of the command. The text is edited by `settings_text`; here the file is read,
compared and replaced. It is replaced atomically, so that a client reads either the old or the new
file. A failure leaves the file unchanged.
"""

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from mcp_notebook.clients.client import Client, Entry, Machine, Server
from mcp_notebook.clients.settings_text import (
    add_entry,
    find_entry,
    list_entries,
    remove_entry,
)
from mcp_notebook.errors import ClientError
from mcp_notebook.settings.private_files import read_private, write_private
from mcp_notebook.settings.settings import Settings
from mcp_notebook.settings.shared_files import replace_file

_MOST = 64 * 2**20
"""Maximum bytes of a backup: Claude Code keeps its history in its settings."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A planned change of a settings file."""

    client: Client
    """The client of the settings."""
    file: Path
    """The settings file."""
    before: str | None
    """The current text; None for no file."""
    after: str | None
    """The new text; None for no file."""

    @property
    def is_needed(self) -> bool:
        """Whether anything changes."""
        return self.before != self.after


def is_installed(client: Client, machine: Machine) -> bool:
    """Return whether a client seems to be installed, or needs no installation."""
    path = machine.env.get("PATH", os.defpath)
    return (
        client.belongs_to_folder
        or client.is_importable
        or client.find_file(machine).exists()
        or client.find_trace(machine).is_dir()
        or any(shutil.which(command, path=path) for command in client.commands)
    )


def explain_absence(client: Client, machine: Machine) -> str:
    """Explain why a client seems not to be installed, as a sentence."""
    names = " or ".join(f"`{command}`" for command in client.commands)
    commands = f", and no command {names}" if names else ""
    return (
        f"{client.title} seems not to be installed: there is no {client.find_trace(machine)}"
        f"{commands}."
    )


def read_entries(client: Client, file: Path) -> dict[str, Entry]:
    """Return the entries of all servers in a client's settings, by name; none without a file.

    Raises:
        ClientError: The file cannot be read, or is not valid.
    """
    text = _read(client, file)
    try:
        return {} if text is None else list_entries(client, text)
    except ValueError as error:
        raise _make_unusable(client, file, error) from None


def plan_installation(
    client: Client, file: Path, name: str, server: Server, *, replace: bool = False
) -> Change:
    """Plan the installation of a server.

    Args:
        client: The client.
        file: Its settings file.
        name: The server's name in the client.
        server: The server.
        replace: Whether to replace a different server with this name.

    Raises:
        ClientError: The file cannot be read or changed, or has a different server of this name.
    """
    before = _read(client, file)
    entry = client.make_entry(server)
    try:
        there = find_entry(client, before or "", name)
        if there is not None and there != entry and not replace:
            raise ClientError(
                f"{client.title} already has a server {name!r} with other settings, in {file}. "
                "Nothing was changed. Add --replace to overwrite it, or choose another --name."
            )
        after = add_entry(client, before or "", name, entry)
    except ValueError as error:
        raise _make_unusable(client, file, error) from None
    return Change(client=client, file=file, before=before, after=after)


def plan_removal(client: Client, file: Path, name: str, settings: Settings) -> Change:
    """Plan the removal of a server. If nothing else has changed, the backup is restored.

    Args:
        client: The client.
        file: Its settings file.
        name: The server's name in the client.
        settings: Names the folder of backups.

    Raises:
        ClientError: The file cannot be read or changed, or has no server of this name.
    """
    before = _read(client, file)
    try:
        entry = None if before is None else find_entry(client, before, name)
        if before is None or entry is None:
            raise ClientError(
                f"{client.title} has no server {name!r} in {file}, so there is nothing to remove."
            )
        after = remove_entry(client, before, name) or None
        backup = _read_backup(settings, file)
        # Restore the backup only if the server is all that has changed since.
        if (
            backup is not None
            and find_entry(client, backup, name) is None
            and add_entry(client, backup, name, entry) == before
        ):
            after = backup
    except ValueError as error:
        raise _make_unusable(client, file, error) from None
    return Change(client=client, file=file, before=before, after=after)


def apply_change(change: Change, settings: Settings) -> Path | None:
    """Write a change, and return the backup; None if there was no file.

    Args:
        change: The planned change.
        settings: Names the folder of backups.

    Raises:
        ClientError: The file cannot be written, or has changed since it was read.
    """
    client, file = change.client, change.file
    backup = None
    if _read(client, file) != change.before:
        raise ClientError(
            f"Another program changed {file} in the meantime, so nothing was written. Run the "
            "command again."
        )
    try:
        if change.before is not None:
            backup = find_backup(settings, file)
            write_private(backup, change.before)
        # Follow a symbolic link: dotfiles are often links to files elsewhere.
        target = file.resolve()
        if change.after is None:
            target.unlink()
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, change.after)
    except OSError as error:
        place = error.filename or file
        raise ClientError(
            f"{client.title}'s settings, {file}, were not changed: {place} cannot be written "
            f"({error.strerror}). Make it writable, or paste the output "
            f"of `mcp-notebook install {client.name} --print`."
        ) from None
    return backup


def find_backup(settings: Settings, file: Path) -> Path:
    """Return the path of the last backup of a settings file."""
    digest = hashlib.sha256(str(file.absolute()).encode("utf-8", "surrogateescape")).hexdigest()
    return settings.home / "backups" / f"{digest[:12]}-{file.name.lstrip('.')}"


def _read(client: Client, file: Path) -> str | None:
    """Return the text of a file; None if it does not exist."""
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise _make_unusable(client, file, ValueError(f"is not UTF-8: {error.reason}")) from None
    except OSError as error:
        problem = ValueError(f"cannot be read: {error.strerror}")
        raise _make_unusable(client, file, problem) from None


def _read_backup(settings: Settings, file: Path) -> str | None:
    try:
        return read_private(find_backup(settings, file), _MOST).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _make_unusable(client: Client, file: Path, problem: ValueError) -> ClientError:
    return ClientError(
        f"{client.title}'s settings, {file}, were not changed: the file {problem}. Fix it, or "
        f"paste the output of `mcp-notebook install {client.name} --print` into it."
    )
