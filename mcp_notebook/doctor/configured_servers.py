"""The entries for mcp-notebook in clients' settings: commands to start, and addresses.

Reads settings files and changes nothing. Maps the clients' different keys to common names.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_notebook.clients.client import Client, Entry, Machine
from mcp_notebook.clients.installation import read_entries
from mcp_notebook.clients.snippets import SERVER_NAME
from mcp_notebook.settings.settings import Settings

_PROGRAMS = ("mcp-notebook", "mcp_notebook")
"""The names of this program: its command, and its module for ``python -m``."""
_LONGEST = 300.0
"""Maximum seconds to wait for a server, whatever its client's timeout."""


@dataclass(frozen=True, kw_only=True)
class ConfiguredServer:
    """A server in a client's settings."""

    client: Client
    file: Path
    """The settings file."""
    is_usual_file: bool
    """Whether the file is in its usual place."""
    name: str
    """The server's name in the client."""
    entry: Entry
    """The server's entry in the settings."""

    @property
    def url(self) -> str | None:
        """The address, if the client connects to one."""
        for key in ("url", "httpUrl", "serverUrl"):
            if isinstance(self.entry.get(key), str):
                return str(self.entry[key])
        return None

    @property
    def words(self) -> tuple[str, ...]:
        """The command with its arguments; empty without a command."""
        command = self.entry.get("command")
        arguments = self.entry.get("args", [])
        if not isinstance(command, str) or not command or not isinstance(arguments, list):
            return ()
        return (command, *map(str, arguments))

    @property
    def env(self) -> Mapping[str, str]:
        """The environment variables of the command."""
        env = self.entry.get("env")
        if isinstance(env, list):  # of Jupyter AI
            pairs = [item for item in env if isinstance(item, dict)]
            env = {str(item.get("name")): item.get("value", "") for item in pairs}
        return {key: str(env[key]) for key in env} if isinstance(env, dict) else {}

    @property
    def headers(self) -> Mapping[str, Any]:
        """The headers sent to the address, before variables are expanded."""
        headers = self.entry.get("headers")
        variable = self.entry.get("bearer_token_env_var")
        if variable is not None:
            return {"Authorization": f"Bearer ${{{variable}}}"}
        return headers if isinstance(headers, dict) else {}

    @property
    def is_off(self) -> bool:
        """Whether the server is disabled."""
        return self.entry.get("enabled") is False or self.entry.get("disabled") is True

    @property
    def start_limit(self) -> float:
        """Seconds that the client waits for the server to start."""
        seconds = self.client.start_seconds
        if self.client.start_member is not None:
            key, unit = self.client.start_member
            value = self.entry.get(key)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                seconds = value * unit
        return min(seconds, _LONGEST)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of this program in the command."""
        for place, word in enumerate(self.words):
            if _is_program(word):
                return self.words[place + 1 :]
        return ()

    def find_folder(self, machine: Machine) -> Path:
        """Return the working directory of the command."""
        folder = self.entry.get("cwd")
        if isinstance(folder, str) and folder:
            return Path(folder).expanduser()
        return machine.folder if self.client.belongs_to_folder else machine.home

    def find_home(self, machine: Machine) -> Path:
        """Return the home folder in which the command looks for open notebooks."""
        return Path(self.env.get("MCP_NOTEBOOK_HOME") or machine.home / Settings().home.name)

    def format_repair(self) -> str:
        """Return the command that rewrites this entry, an address with that of the bridge."""
        words = ["mcp-notebook", "install", self.client.name]
        words += ["--http"] if self.url is not None else []
        if self.name != SERVER_NAME:
            words += ["--name", self.name]
        if not self.is_usual_file:
            words += ["--file", str(self.file)]
        words.append("--replace")
        if self.arguments[:1] == ("stdio",):
            words += [word for word in self.arguments[1:] if word != "--meta-tools"]
        elif self.arguments[:1] == ("connect",):
            words += ["--url", *self.arguments[1:]]
        return f"`{shlex.join(words)}`"


def read_servers(
    client: Client, machine: Machine, file: Path | None = None
) -> Sequence[ConfiguredServer]:
    """Return the entries for mcp-notebook in a client's settings.

    Args:
        client: The client.
        machine: The machine that the client runs on.
        file: The settings file; None for its usual place.

    Raises:
        ClientError: The settings cannot be read.
    """
    place = file or client.find_file(machine)
    servers = [
        ConfiguredServer(
            client=client, file=place, is_usual_file=file is None, name=entry_name, entry=entry
        )
        for entry_name, entry in read_entries(client, place).items()
    ]
    return [
        server
        for server in servers
        if server.name == SERVER_NAME or any(map(_is_program, server.words))
    ]


def _is_program(word: str) -> bool:
    return Path(word).stem in _PROGRAMS
