"""All settings of mcp-notebook: default, unit and environment variable of each.

`Settings` is built once, by the command line or by ``%load_ext``, and passed on. Only this module
reads settings from the environment; `values` checks them. Runs in every process.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from mcp_notebook.errors import NoHomeFolder
from mcp_notebook.settings.limits import LIMITS_VARIABLE, Limits, is_limit, read_limits
from mcp_notebook.settings.values import describe_variable as _env
from mcp_notebook.settings.values import read_values, to_text

Audit: TypeAlias = Literal["hash", "full", "none", "off"]
"""What the audit log records of a call's arguments; "off" if there is no log."""
ErrorDetail: TypeAlias = Literal["full", "short", "masked"]
"""How much of a failing tool's error a client gets."""
MetaTools: TypeAlias = bool | Literal["only"]
"""Whether a bridge offers tools that call others, and whether only these."""
DEFAULT_PORT = 8791
"""Default port of the HTTP endpoint. If it is in use, the next free port is used."""
SERVER_PATH = "JPY_MCP_PATH"
"""The variable in which a Jupyter Server gives its kernels the path of its endpoint."""
_SERVE, _BOTH = ("serve",), ("serve", "stdio")
"""The commands that take a setting as an option."""
KERNEL_ID = "MCP_NOTEBOOK_KERNEL_ID"
"""The variable in which a bridge gives a headless kernel the id of its record. Not a setting."""


def _find_home() -> Path:
    try:
        return Path.home() / ".mcp-notebook"
    except RuntimeError:
        raise NoHomeFolder from None


@dataclass(frozen=True, kw_only=True)
class Settings(Limits):
    """All settings. `make_reference.py` turns the strings below the fields into documentation."""

    home: Path = field(default_factory=_find_home, metadata=_env("MCP_NOTEBOOK_HOME"))
    """Folder for the records of live kernels, their sockets, the token, the audit log and the
    background bridge's log. The default depends only on HOME, because desktop clients pass no other
    variables to the processes that they start."""
    host: str = field(default="127.0.0.1", metadata=_env("MCP_NOTEBOOK_HOST", on=_SERVE))
    """Address that the HTTP endpoint listens on. By default, only this machine can reach it."""
    port: int | None = field(
        default=None, metadata=_env("MCP_NOTEBOOK_PORT", least=0, most=65_535, on=_SERVE)
    )
    """Port of the HTTP endpoint. If not set, the last port is used again, at first 8791. If that is
    in use, the next free port is used, with a new token unless the port is in use by you."""
    allowed_hosts: tuple[str, ...] = field(default=(), metadata=_env("MCP_NOTEBOOK_ALLOWED_HOSTS"))
    """Host names by which clients reach the HTTP endpoint through your own proxy, without port,
    such as "tools.example.com", and whose web pages may use it. Separate several with ",". The
    names of this machine are always allowed; if other machines may connect (see `host`), all names
    of the endpoint are."""
    certfile: Path | None = field(default=None, metadata=_env("MCP_NOTEBOOK_CERTFILE", on=_SERVE))
    """TLS certificate of the HTTP endpoint, as a PEM file."""
    keyfile: Path | None = field(default=None, metadata=_env("MCP_NOTEBOOK_KEYFILE", on=_SERVE))
    """Private key of the certificate, as a PEM file without a password. If not set, it is read from
    the certificate's file."""
    insecure: bool = field(default=False, metadata=_env("MCP_NOTEBOOK_INSECURE", on=_SERVE))
    """Whether other machines may connect (see `host`) without TLS."""
    token: str | None = field(default=None, repr=False, metadata=_env("MCP_NOTEBOOK_TOKEN"))
    """Bearer token of the HTTP endpoint. If not set, the token is read from `token_file`."""
    token_file: Path | None = field(
        default=None, metadata=_env("MCP_NOTEBOOK_TOKEN_FILE", on=_SERVE)
    )
    """File with the bearer token, created at the first start. If not set, `home`/token."""
    oauth_file: Path | None = field(
        default=None, metadata=_env("MCP_NOTEBOOK_OAUTH_FILE", on=_SERVE)
    )
    """TOML file that admits users of an OAuth issuer or a JupyterHub, and defines what each scope
    allows."""
    idle_minutes: float = field(default=10.0, metadata=_env("MCP_NOTEBOOK_IDLE_MINUTES", least=0))
    """Minutes without an open notebook after which the background bridge stops, and minutes without
    a call after which the kernel of a folder's notebook does."""
    start_timeout: float = field(default=60.0, metadata=_env("MCP_NOTEBOOK_START_TIMEOUT", least=0))
    """Seconds to wait for a headless kernel to start, or for the background bridge to answer."""
    own_environment: bool = field(default=True, metadata=_env("MCP_NOTEBOOK_OWN_ENVIRONMENT"))
    """Whether a headless notebook that lists its packages in a script block (PEP 723) runs in an
    environment of its own, which uv installs, instead of that of its kernel."""
    watch: bool = field(default=False, metadata=_env("MCP_NOTEBOOK_WATCH", on=_SERVE))
    """Whether a headless notebook runs again in a new kernel when its changed code is saved. That
    takes over once all cells have run. Folders are always watched."""
    trusted_only: bool = field(default=False, metadata=_env("MCP_NOTEBOOK_TRUSTED_ONLY", on=_BOTH))
    """Whether to run a headless notebook only if it is trusted, that is, signed by Jupyter when you
    saved it there or ran `jupyter trust FILE`."""
    meta_tools: MetaTools = field(default=False, metadata=_env("MCP_NOTEBOOK_META_TOOLS", on=_BOTH))
    """Whether to offer four more tools that list, describe and call the notebooks' tools and fetch
    late results, for clients that do not notice when the list of tools changes. With "only", the
    list has no other tools, and one of the four searches: for hundreds of tools."""
    confirm_destructive: bool = field(
        default=False, metadata=_env("MCP_NOTEBOOK_CONFIRM_DESTRUCTIVE", on=_BOTH)
    )
    """Whether a person is asked before each call of a tool that may delete or overwrite something,
    that is, of any tool not marked `--read-only` or `--non-destructive`, and before `run_notebook`
    runs a notebook of a folder."""
    tools: tuple[str, ...] = field(default=(), metadata=_env("MCP_NOTEBOOK_TOOLS", on=_BOTH))
    """Patterns of the tools that clients see. One must match the tool's name, or NOTEBOOK.TOOL.
    Separate several with ",". If not set, clients see all tools."""
    exclude: tuple[str, ...] = field(default=(), metadata=_env("MCP_NOTEBOOK_EXCLUDE", on=_BOTH))
    """Patterns of tools that clients do not see, even if they match `tools`. Separate several with
    ","."""
    read_only: bool = field(default=False, metadata=_env("MCP_NOTEBOOK_READ_ONLY", on=_BOTH))
    """Whether clients see only tools that are declared read-only."""
    locked: bool = field(default=False, metadata=_env("MCP_NOTEBOOK_LOCKED", on=_BOTH))
    """Whether to keep back tools that have changed since they were locked (`mcp-notebook check FILE
    --lock`) in a way that breaks a caller, and all tools of a notebook that has no lock."""
    inspect: bool = field(default=False, metadata=_env("MCP_NOTEBOOK_INSPECT", on=_BOTH))
    """Whether clients can list the notebooks' variables and read a summary of each, as resources.
    Names that begin with "_", modules, functions and classes are left out."""
    propose: bool = field(default=False, metadata=_env("MCP_NOTEBOOK_PROPOSE", on=_BOTH))
    """Whether clients may propose cells in headless notebooks from the start, as after `%mcp
    propose on`. A person decides in a frontend of the notebook's kernel; until one has run a cell,
    proposals are refused."""
    audit: Audit = field(default="hash", metadata=_env("MCP_NOTEBOOK_AUDIT"))
    """What the audit log records of the arguments of each call: their "hash" (SHA-256), the "full"
    arguments, or "none". With "off", bridges write no audit log."""
    errors: ErrorDetail | None = field(default=None, metadata=_env("MCP_NOTEBOOK_ERRORS", on=_BOTH))
    """What clients get of the error of a failing tool that does not say so itself: "full", with the
    lines of your code; "short", its type and message, with file names in place of paths; "masked",
    only that the call failed. If not set, you get it in full on this machine (over stdio, and with
    the endpoint's own token unless it listens for other machines), and all others get it short."""
    call_timeout: float | None = field(
        default=None, metadata=_env("MCP_NOTEBOOK_CALL_TIMEOUT", least=0)
    )
    """Seconds that a call may run if its tool sets no time limit. If not set, there is no limit."""
    task_after: float = field(default=10.0, metadata=_env("MCP_NOTEBOOK_TASK_AFTER", least=0.1))
    """Seconds after which a running call becomes a task, if its client supports tasks, or is
    answered with a handle, if its tool has `--task`. The client may then fetch the result later."""
    limits: str = field(default="normal", metadata=_env(LIMITS_VARIABLE))
    """Limits on requests and results: "strict" for shared endpoints, "normal", "open" for a machine
    of your own, or the path of a TOML file with single limits; see
    [Limits](../operate/limits.md)."""
    allowed_roots: tuple[Path, ...] = field(default=(), metadata=_env("MCP_NOTEBOOK_ALLOWED_ROOTS"))
    """Folders and files that a tool may return as a `Path` or take as a `SharedPath`, in addition
    to the notebook's own folder. Hidden files and folders in them are excluded unless they are
    listed themselves. Separate several with ":", or with ";" on Windows."""

    @property
    def records_folder(self) -> Path:
        """The folder in which live kernels publish their records."""
        return self.home / "kernels"

    @property
    def schemas_folder(self) -> Path:
        """The folder in which schemas are cached."""
        return self.home / "schemas"

    @property
    def environments_folder(self) -> Path:
        """The folder of the locked versions of notebooks' own environments."""
        return self.home / "environments"

    @property
    def bridge_file(self) -> Path:
        """The file in which the user's background bridge publishes its record."""
        return self.home / "bridge.json"

    @property
    def audit_path(self) -> Path:
        """The audit log; each file has the month in its name, as in audit-2026-11.jsonl."""
        return self.home / "audit.jsonl"

    @property
    def token_path(self) -> Path:
        """The file with the bearer token."""
        return self.token_file or self.home / "token"

    @property
    def tokens_file(self) -> Path:
        """The file with the named tokens."""
        return self.home / "tokens.json"

    @property
    def token_place(self) -> str:
        """A description of where the user finds the bearer token, without the token."""
        if self.token:
            return "the environment variable MCP_NOTEBOOK_TOKEN"
        return f"the file {self.token_path}"

    @classmethod
    def from_environment(
        cls,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Self:
        """Build the settings from options and environment variables; options take precedence.

        Args:
            env: The environment; None for that of the process. Empty variables count as unset.
            **options: Values of fields, from the command line. None counts as unset.

        Raises:
            SettingsError: A value cannot be used.
        """
        env = os.environ if env is None else env
        values = {name: value for name, (value, _) in _read_all(env, options).items()}
        return cls(**values)

    def environment(self) -> dict[str, str]:
        """Return environment variables that give a child process these settings.

        They include the token; only the user's own processes can read them.
        """
        return {
            option.metadata["env"]: to_text(value)
            for option in fields(self)
            if not is_limit(option)
            for value in [getattr(self, option.name)]
            if value is not None
        }


def _read_all(env: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """Return the values that are set, with their sources. Single limits override their set."""
    values = read_values(Settings, env, options)
    if "limits" not in values:
        return values
    chosen, source = values["limits"]
    name, limits = read_limits(chosen, source)
    return limits | values | {"limits": (name, source)}


def list_sources(env: Mapping[str, str] | None = None, **options: Any) -> dict[str, str]:
    """Return the option, variable or file of each field that is set.

    Args:
        env: As for `Settings.from_environment`.
        **options: As for `Settings.from_environment`.

    Raises:
        SettingsError: A value cannot be used.
    """
    env = os.environ if env is None else env
    return {name: source for name, (_, source) in _read_all(env, options).items()}


def list_unknown_variables(env: Mapping[str, str] | None = None) -> list[str]:
    """Return the variables that look like settings but are unknown.

    Args:
        env: The environment; None for that of the process.
    """
    variables = {option.metadata["env"] for option in fields(Settings)} | {KERNEL_ID}
    env = os.environ if env is None else env
    return sorted(
        name for name in env if name.startswith("MCP_NOTEBOOK_") and name not in variables
    )
