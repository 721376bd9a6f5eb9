"""Every option of mcp-notebook: its default, its unit and its environment variable.

`Settings` is built once, at the edge (the command line or ``%load_ext``), and passed in. This is
the only module that reads the environment. Runs in every process.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from mcp_notebook.errors import SettingsError

DEFAULT_PORT = 8791
"""Port of the HTTP endpoint when none is given; the next free one is taken if it is in use."""


def _env(name: str) -> dict[str, str]:
    return {"env": name}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All options; each field's string says what it is, each `env` where it may come from."""

    home: Path = field(
        default_factory=lambda: Path.home() / ".mcp-notebook", metadata=_env("MCP_NOTEBOOK_HOME")
    )
    """Folder of records, sockets, the token and the background bridge's log. Found from HOME alone,
    since a desktop client's child process gets no XDG or JUPYTER variables."""
    host: str = field(default="127.0.0.1", metadata=_env("MCP_NOTEBOOK_HOST"))
    """Address that the HTTP endpoint listens on."""
    port: int | None = field(default=None, metadata=_env("MCP_NOTEBOOK_PORT"))
    """Port of the HTTP endpoint; None: the usual one (8791), or the next free one."""
    token: str | None = field(default=None, repr=False, metadata=_env("MCP_NOTEBOOK_TOKEN"))
    """Bearer token of the HTTP endpoint; None: the one in `token_file`, made at the first start."""
    token_file: Path | None = field(default=None, metadata=_env("MCP_NOTEBOOK_TOKEN_FILE"))
    """File that holds the token (mode 0600); None: ``token`` in `home`."""
    idle_minutes: float = field(default=10.0, metadata=_env("MCP_NOTEBOOK_IDLE_MINUTES"))
    """Minutes after the last notebook is gone until the background bridge ends."""
    start_timeout: float = field(default=60.0, metadata=_env("MCP_NOTEBOOK_START_TIMEOUT"))
    """Seconds to wait for a headless kernel to start, or for the background bridge to answer."""
    cell_timeout: float | None = field(default=None, metadata=_env("MCP_NOTEBOOK_CELL_TIMEOUT"))
    """Seconds that one cell of a headless notebook may run; None: no limit."""
    allow_errors: bool = field(default=False, metadata=_env("MCP_NOTEBOOK_ALLOW_ERRORS"))
    """Serve a headless notebook although one of its cells failed."""
    max_waiting_calls: int = field(default=64, metadata=_env("MCP_NOTEBOOK_MAX_WAITING_CALLS"))
    """Calls that may be running or waiting in one kernel; one more is answered "busy"."""
    max_result_chars: int = field(default=25_000, metadata=_env("MCP_NOTEBOOK_MAX_RESULT_CHARS"))
    """Characters of text in one result; what is longer is cut in the middle, and says so."""
    max_table_rows: int = field(default=50, metadata=_env("MCP_NOTEBOOK_MAX_TABLE_ROWS"))
    """Rows of a table in a result; longer ones show their head and tail."""

    kernel_id: str | None = field(default=None, metadata=_env("MCP_NOTEBOOK_KERNEL_ID"))
    """Set by a bridge for the headless kernel that it starts: the id of that kernel's record."""

    @property
    def records_folder(self) -> Path:
        """Where live kernels publish their records."""
        return self.home / "kernels"

    @property
    def bridge_file(self) -> Path:
        """Where the user's background bridge publishes its record."""
        return self.home / "bridge.json"

    @property
    def token_path(self) -> Path:
        """The file that holds the token."""
        return self.token_file or self.home / "token"

    @classmethod
    def from_environment(cls, env: Mapping[str, str] | None = None, **given: Any) -> Self:
        """Build the settings from what was given (None counts as not given), then the environment.

        Args:
            env: Environment to read; the process's own if None.
            **given: Values of fields, from the command line.

        Raises:
            SettingsError: A variable's value cannot be used.
        """
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - keeps the import cheap

        env = os.environ if env is None else env
        values: dict[str, Any] = {}
        for option in fields(cls):
            variable = option.metadata["env"]
            if given.get(option.name) is not None:
                source, value = f"--{option.name.replace('_', '-')}", given[option.name]
            elif env.get(variable):
                source, value = variable, env[variable]
            else:
                continue
            try:
                values[option.name] = TypeAdapter(option.type).validate_python(value)
            except ValidationError as error:
                reason = error.errors()[0]["msg"]
                shown = "***" if not option.repr else repr(str(value))
                raise SettingsError(f"{source}={shown} cannot be used: {reason}.") from None
        return cls(**values)
