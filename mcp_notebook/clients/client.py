"""The description of a client: the place of its settings, and the form of an entry.

Data and pure functions, in every process. The clients themselves are in `known_clients`.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

TOKEN_VARIABLE = "MCP_NOTEBOOK_TOKEN"  # noqa: S105 - the variable's name
"""The environment variable with the token, for clients that cannot read the token's file."""
Syntax: TypeAlias = Literal["json", "toml"]
"""The format of a settings file; "json" may have comments."""
HeaderSource: TypeAlias = Literal["file", "variable", "nowhere"]
"""Where a client can read the token of the HTTP endpoint when it connects."""
Entry: TypeAlias = dict[str, Any]
"""The entry for one server in a client's settings: strings, numbers, lists and objects."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where programs keep their settings on a machine."""

    platform: str
    """The value of `sys.platform`: "linux", "darwin", "win32"."""
    home: Path
    """The user's home folder."""
    folder: Path
    """The current folder, for clients with settings in a project's folder."""
    env: Mapping[str, str]
    """The environment variables."""

    @classmethod
    def current(cls) -> Self:
        """Return the machine of this process."""
        return cls(platform=sys.platform, home=Path.home(), folder=Path.cwd(), env=os.environ)

    @property
    def config(self) -> Path:
        """The settings folder by Unix convention: ``~/.config``."""
        return self.find_folder("XDG_CONFIG_HOME", ".config")

    @property
    def app_data(self) -> Path:
        """The settings folder by the platform's convention."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return self.find_folder("APPDATA", "AppData/Roaming")
        return self.config

    def find_folder(self, variable: str, name: str) -> Path:
        """Return the folder named by a variable, or else a folder in the home folder."""
        value = self.env.get(variable)
        return Path(value) if value else self.home / name


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The command that a client starts; it works in an empty environment."""

    command: str
    """Absolute path of the interpreter."""
    arguments: tuple[str, ...]
    """The arguments of the command."""
    env: Mapping[str, str]
    """Environment variables that the command needs."""
    runs_notebooks: bool
    """Whether the command first runs notebooks, which may take minutes."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """The address that a client connects to."""

    url: str
    """Address of the HTTP endpoint."""
    token_file: Path | None
    """The file with the token; None if the client reads `TOKEN_VARIABLE`."""
    token_place: str
    """A description of where the user finds the token, without the token."""


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A remote server, and the source of its token."""

    address: str
    """The address of a bridge, or of any page of a Jupyter server."""
    token_source: str | None = None
    """A file, or "env:VARIABLE"."""


Server: TypeAlias = Launch | Endpoint
"""How a client reaches a server."""


@dataclass(frozen=True, kw_only=True)
class Client:
    """An MCP client, as far as its settings are concerned."""

    name: str
    """Its name in commands."""
    title: str
    """Its name for people."""
    program: str = ""
    """Its name in MCP's ``clientInfo``, where it was seen."""
    find_file: Callable[[Machine], Path]
    """Returns the path of its settings file on a machine."""
    syntax: Syntax = "json"
    """The format of the settings."""
    section: str = "mcpServers"
    """The key of the settings that holds the servers, an object by name."""
    has_list: bool = False
    """Whether the section is a list of named servers."""
    make_entry: Callable[[Server], Entry]
    """Returns the entry for a server."""
    header_from: HeaderSource = "variable"
    """Where the client can read the token of the HTTP endpoint."""
    sees_new_tools: bool = True
    """Whether it lists the tools again when notified of a change."""
    commands: tuple[str, ...] = ()
    """Its commands on the PATH."""
    package: str | None = None
    """The Python package of an assistant inside Jupyter, in the environment of Jupyter."""
    trace: str | None = None
    """A folder that it creates in the home folder; None for the folder of its settings."""
    belongs_to_folder: bool = False
    """Whether the settings belong to a project folder, so that no program needs to be installed."""
    start_seconds: float = 60.0
    """How long it waits for a server to start; by default the MCP SDK's request timeout."""
    start_member: tuple[str, float] | None = None
    """The key of an entry that overrides this timeout, and its unit in seconds."""
    make_link: Callable[[str, Entry], str] | None = None
    """Returns a link that opens the client and adds an entry, given the server's name."""
    next_step: str
    """The user's next step after the entry was added, as a sentence."""

    @property
    def is_importable(self) -> bool:
        """Whether it is an assistant inside Jupyter, and in the environment of this process."""
        return self.package is not None and find_spec(self.package) is not None

    def find_trace(self, machine: Machine) -> Path:
        """Return a folder that exists if the client has ever run."""
        return machine.home / self.trace if self.trace else self.find_file(machine).parent
