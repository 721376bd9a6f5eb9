"""What is known of one client: where its settings are, and what an entry in them looks like.

Data and pure functions, in every process. The facts are in `known_clients`.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

TOKEN_VARIABLE = "MCP_NOTEBOOK_TOKEN"  # noqa: S105 - the variable's name
"""The environment variable that clients read the token from, if they cannot read its file."""
Syntax: TypeAlias = Literal["json", "toml", "yaml"]
"""How a settings file is written; "json" may have comments."""
HeaderSource: TypeAlias = Literal["file", "variable", "nowhere"]
"""Where a client can read the token of the HTTP endpoint when it connects."""
Entry: TypeAlias = dict[str, Any]
"""What stands in a client's settings for one server: texts, numbers, lists and objects."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where programs keep their settings on a machine."""

    platform: str
    """As `sys.platform`: "linux", "darwin", "win32"."""
    home: Path
    """The user's home folder."""
    folder: Path
    """The current folder, for clients that read settings beside the user's files."""
    env: Mapping[str, str]
    """The environment variables."""

    @classmethod
    def current(cls) -> Self:
        """Return this machine, as the process sees it."""
        return cls(platform=sys.platform, home=Path.home(), folder=Path.cwd(), env=os.environ)

    @property
    def config(self) -> Path:
        """The folder of settings in the manner of Unix: ``~/.config``."""
        return self._find("XDG_CONFIG_HOME", ".config")

    @property
    def app_data(self) -> Path:
        """The folder of settings in the manner of the platform."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return self._find("APPDATA", "AppData/Roaming")
        return self.config

    def find_folder(self, variable: str, name: str) -> Path:
        """Return the folder that a variable names, or a folder in the home folder."""
        return self._find(variable, name)

    def _find(self, variable: str, name: str) -> Path:
        value = self.env.get(variable)
        return Path(value) if value else self.home / name


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The command that a client starts, as it must be in an empty environment."""

    command: str
    """Absolute path of the interpreter."""
    arguments: tuple[str, ...]
    """All that follow it."""
    env: Mapping[str, str]
    """The variables that it needs."""
    runs_notebooks: bool
    """Whether it runs notebooks before it has tools, which may take minutes."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """The address that a client connects to."""

    url: str
    """Address of the HTTP endpoint."""
    token_file: Path | None
    """The file to read the token from; None for the variable `TOKEN_VARIABLE`."""
    token_place: str
    """Where the user finds the token, in words that do not contain it."""


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A server elsewhere, and where its token is."""

    address: str
    """Of a bridge, or of any page of a Jupyter server."""
    token_source: str | None = None
    """A file, "env:VARIABLE", or "keyring:NAME" for an entry of the system's keyring."""


Server: TypeAlias = Launch | Endpoint
"""What a client is told."""


@dataclass(frozen=True, kw_only=True)
class Client:
    """A program that serves an assistant, as far as its settings are concerned."""

    name: str
    """Its name in commands."""
    title: str
    """Its name for people."""
    find_file: Callable[[Machine], Path]
    """Returns where its settings are on a machine."""
    syntax: Syntax = "json"
    """How they are written."""
    section: str = "mcpServers"
    """The member of the settings that holds the servers: an object by name, or a list."""
    is_list: bool = False
    """Whether it is a list, whose entries have their name within."""
    required: Mapping[str, str] | None = None
    """Members that a new file needs besides."""
    former_file: str | None = None
    """The name of former settings beside them, which it ignores once these exist."""
    make_entry: Callable[[Server], Entry]
    """Returns what stands there for a server."""
    header_from: HeaderSource = "variable"
    """Where it can read the token of the HTTP endpoint."""
    sees_new_tools: bool = True
    """Whether it lists the tools again when it is told that there are others."""
    commands: tuple[str, ...] = ()
    """Programs that are on the PATH where it is installed."""
    trace: str | None = None
    """A folder that it makes in the home folder; None if it makes that of its settings."""
    belongs_to_folder: bool = False
    """Whether the file is one of a project, which needs no program to be installed."""
    start_seconds: float = 60.0
    """How long it waits for a server to start; the MCP SDK's limit for a request, unless known."""
    start_member: tuple[str, float] | None = None
    """The member of an entry that sets another limit, and its unit in seconds."""
    make_link: Callable[[str, Entry], str] | None = None
    """Returns a link that opens it and adds an entry; gets the server's name, too."""
    next_step: str
    """What to do once the entry is there, as a sentence."""

    @property
    def is_pasted(self) -> bool:
        """Whether its users paste the lines: nothing changes YAML and keeps its layout."""
        return self.syntax == "yaml"

    def find_trace(self, machine: Machine) -> Path:
        """Return the folder that is there where the client has run."""
        return machine.home / self.trace if self.trace else self.find_file(machine).parent
