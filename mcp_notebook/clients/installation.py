"""Writes a server into a client's settings file, and removes it: with a backup, or not at all.

Runs in the process of the command. What changes in the text is the business of `settings_text`;
here it is read, compared and replaced. A file is replaced in one step, so that a client that reads
it meanwhile sees the old one or the new one. Whatever cannot be done leaves it as it was.
"""

import difflib
import errno
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

_TEMPORARY = ".tmp"
_MOST = 64 * 2**20
"""Bytes of a backup. Claude Code keeps its history in its settings."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a settings file will be, before anything is written."""

    client: Client
    """Whose settings they are."""
    file: Path
    """Where they are."""
    before: str | None
    """What is there; None for no file."""
    after: str | None
    """What will be there; None for no file."""

    @property
    def is_needed(self) -> bool:
        """Whether anything changes."""
        return self.before != self.after

    def format_diff(self) -> str:
        """Return the lines that change, as ``diff -u`` writes them."""
        before, after = ((text or "").splitlines() for text in (self.before, self.after))
        old = os.devnull if self.before is None else str(self.file)
        new = os.devnull if self.after is None else str(self.file)
        lines = difflib.unified_diff(before, after, old, new, lineterm="")
        return "\n".join(lines)


def is_installed(client: Client, machine: Machine) -> bool:
    """Return whether a client has left a trace on a machine, or needs none."""
    path = machine.env.get("PATH", os.defpath)
    return (
        client.belongs_to_folder
        or client.find_file(machine).exists()
        or client.find_trace(machine).is_dir()
        or any(shutil.which(command, path=path) for command in client.commands)
    )


def explain_absence(client: Client, machine: Machine) -> str:
    """Return why a client seems not to be installed, as a sentence."""
    names = " or ".join(f"`{command}`" for command in client.commands)
    commands = f", and no command {names}" if names else ""
    return (
        f"{client.title} seems not to be installed: there is no {client.find_trace(machine)}"
        f"{commands}."
    )


def read_entries(client: Client, file: Path) -> dict[str, Entry]:
    """Return what a client's settings say about all servers, by name; nothing if there is no file.

    Raises:
        ClientError: The file cannot be read, or is not valid.
        MissingLibrary: It is in YAML, and no library reads it.
    """
    text = _read(client, file)
    try:
        return {} if text is None else list_entries(client, text)
    except ValueError as error:
        raise _make_unusable(client, file, error) from None


def plan_installation(
    client: Client, file: Path, name: str, server: Server, *, replace: bool = False
) -> Change:
    """Return what installing a server changes.

    Args:
        client: Whose settings are changed; not one whose users paste the lines.
        file: Where they are.
        name: The server's name in the client.
        server: What the client is told.
        replace: Whether a server of that name with other settings is replaced.

    Raises:
        ClientError: The file cannot be read or changed, or has another server of that name.
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
    """Return what removing a server changes: as far as possible, all is as before it was installed.

    Args:
        client: Whose settings are changed.
        file: Where they are.
        name: The server's name in the client.
        settings: Where backups are.

    Raises:
        ClientError: The file cannot be read or changed, has no server of that name, or is in YAML.
    """
    if client.is_pasted:
        raise ClientError(
            f"{client.title}'s settings, {file}, are in YAML, which this command does not change. "
            f"Remove the server {name!r} from `{client.section}` there."
        )
    before = _read(client, file)
    try:
        entry = None if before is None else find_entry(client, before, name)
        if before is None or entry is None:
            raise ClientError(
                f"{client.title} has no server {name!r} in {file}, so there is nothing to remove."
            )
        after = remove_entry(client, before, name)
        backup = _read_backup(settings, file)
        # The backup is what it was before if the server is all that has changed since.
        if (
            backup is not None
            and find_entry(client, backup, name) is None
            and add_entry(client, backup, name, entry) == before
        ):
            after = backup
    except ValueError as error:
        raise _make_unusable(client, file, error) from None
    return Change(client=client, file=file, before=before, after=after or None)


def apply_change(change: Change, settings: Settings) -> Path | None:
    """Write a change, and return where the file before it is kept; None if there was none.

    Args:
        change: What was planned.
        settings: Where backups are.

    Raises:
        ClientError: The file cannot be written, or has changed meanwhile.
    """
    client, file = change.client, change.file
    backup = None
    if _read(client, file) != change.before:
        raise ClientError(
            f"{client.title} changed {file} meanwhile, so nothing was written. Run the command "
            "again."
        )
    try:
        if change.before is not None:
            backup = find_backup(settings, file)
            write_private(backup, change.before)
        # A link stays one: dotfiles are often links to files elsewhere.
        target = file.resolve()
        if change.after is None:
            target.unlink()
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            _replace(target, change.after)
    except OSError as error:
        place = Path(error.filename or file)
        place = place.parent if place.suffix == _TEMPORARY else place
        raise ClientError(
            f"{client.title}'s settings, {file}, were not changed: {place} cannot be written "
            f"({error.strerror}). Make it writable, or copy the lines of "
            f"`mcp-notebook install {client.name} --print` there."
        ) from None
    return backup


def find_backup(settings: Settings, file: Path) -> Path:
    """Return where the last backup of a settings file is, or would be."""
    digest = hashlib.sha256(str(file.absolute()).encode("utf-8", "surrogateescape")).hexdigest()
    return settings.home / "backups" / f"{digest[:12]}-{file.name.lstrip('.')}"


def _read(client: Client, file: Path) -> str | None:
    """Return a file's text; None if there is none."""
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


def _replace(file: Path, text: str) -> None:
    """Write a file in one step, with the permissions that it has."""
    if file.exists() and not os.access(file, os.W_OK):
        # It could be replaced all the same, but somebody did not want that.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
    temporary = file.with_name(f".{file.name}.{os.getpid()}{_TEMPORARY}")
    try:
        with temporary.open("xb") as stream:
            stream.write(text.encode("utf-8"))
        if file.exists():
            shutil.copymode(file, temporary)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _make_unusable(client: Client, file: Path, problem: ValueError) -> ClientError:
    return ClientError(
        f"{client.title}'s settings, {file}, were left alone: the file {problem}. Correct it, or "
        f"copy the lines of `mcp-notebook install {client.name} --print` into it."
    )
