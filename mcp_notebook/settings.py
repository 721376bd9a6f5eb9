"""Every option of mcp-notebook: its default, its unit and its environment variable.

`Settings` is built once, at the edge (the command line or ``%load_ext``), and passed in. This is
the only module that reads the environment. Runs in every process.
"""

import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias, get_type_hints

from mcp_notebook.errors import SettingsError

TableFormat: TypeAlias = Literal["auto", "markdown", "csv"]
"""How tables are written in results; "auto": the way that takes less room."""
DEFAULT_PORT = 8791
"""Port of the HTTP endpoint when none is given; the next free one is taken if it is in use."""


def _env(name: str, *, least: float | None = None, most: float | None = None) -> dict[str, Any]:
    """Return an option's metadata: its environment variable and the bounds of its value."""
    return {"env": name, "ge": least, "le": most}


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
    port: int | None = field(default=None, metadata=_env("MCP_NOTEBOOK_PORT", least=0, most=65_535))
    """Port of the HTTP endpoint; None: the usual one (8791), or the next free one."""
    token: str | None = field(default=None, repr=False, metadata=_env("MCP_NOTEBOOK_TOKEN"))
    """Bearer token of the HTTP endpoint; None: the one in `token_file`, made at the first start."""
    token_file: Path | None = field(default=None, metadata=_env("MCP_NOTEBOOK_TOKEN_FILE"))
    """File that holds the token (mode 0600); None: ``token`` in `home`."""
    idle_minutes: float = field(default=10.0, metadata=_env("MCP_NOTEBOOK_IDLE_MINUTES", least=0))
    """Minutes after the last notebook is gone until the background bridge ends."""
    start_timeout: float = field(default=60.0, metadata=_env("MCP_NOTEBOOK_START_TIMEOUT", least=0))
    """Seconds to wait for a headless kernel to start, or for the background bridge to answer."""
    cell_timeout: float | None = field(
        default=None, metadata=_env("MCP_NOTEBOOK_CELL_TIMEOUT", least=0)
    )
    """Seconds that one cell of a headless notebook may run; None: no limit."""
    allow_errors: bool = field(default=False, metadata=_env("MCP_NOTEBOOK_ALLOW_ERRORS"))
    """Serve a headless notebook although one of its cells failed."""
    meta_tools: bool = field(default=False, metadata=_env("MCP_NOTEBOOK_META_TOOLS"))
    """Offer tools that list, describe and call the notebooks' tools, for clients that ignore
    changes of the list."""
    page_size: int | None = field(
        default=None, metadata=_env("MCP_NOTEBOOK_PAGE_SIZE", least=1, most=10_000)
    )
    """Tools, or resources, on one page of the lists that clients get; None: all tools, and 100
    resources."""
    schema_cache: bool = field(default=True, metadata=_env("MCP_NOTEBOOK_SCHEMA_CACHE"))
    """Keep the tools' schemas on disk (in `home`), so that the next start need not build them."""
    max_waiting_calls: int = field(
        default=64, metadata=_env("MCP_NOTEBOOK_MAX_WAITING_CALLS", least=1)
    )
    """Calls that may be running or waiting in one kernel; one more is answered "busy"."""
    call_timeout: float | None = field(
        default=None, metadata=_env("MCP_NOTEBOOK_CALL_TIMEOUT", least=0)
    )
    """Seconds that a call may run whose tool has no limit of its own; None: no limit."""
    max_result_chars: int = field(
        default=25_000, metadata=_env("MCP_NOTEBOOK_MAX_RESULT_CHARS", least=1)
    )
    """Characters of text in one result; what is longer is cut in the middle, and says so."""
    max_structured_chars: int = field(
        default=100_000, metadata=_env("MCP_NOTEBOOK_MAX_STRUCTURED_CHARS", least=1)
    )
    """Characters of JSON in one result's structured content; more is an error, never cut."""
    max_table_rows: int = field(default=50, metadata=_env("MCP_NOTEBOOK_MAX_TABLE_ROWS", least=1))
    """Rows of a table in a result; longer ones show their head and tail."""
    table_format: TableFormat = field(default="auto", metadata=_env("MCP_NOTEBOOK_TABLE_FORMAT"))
    """How tables are written: "markdown", "csv", or "auto", the one of them that is shorter."""
    max_pictures: int = field(default=8, metadata=_env("MCP_NOTEBOOK_MAX_PICTURES", least=1))
    """Pictures in one result; of more, the first ones and the last one are shown."""
    max_picture_side: int = field(
        default=1_568, metadata=_env("MCP_NOTEBOOK_MAX_PICTURE_SIDE", least=16)
    )
    """Pixels on the longer side of a picture; larger ones are scaled down, as models' vision does
    anyway."""
    max_picture_bytes: int = field(
        default=2**20, metadata=_env("MCP_NOTEBOOK_MAX_PICTURE_BYTES", least=1_024)
    )
    """Bytes of one encoded picture; larger ones are made smaller."""
    max_result_bytes: int = field(
        default=2**19, metadata=_env("MCP_NOTEBOOK_MAX_RESULT_BYTES", least=1_024)
    )
    """Bytes of all pictures, sounds and embedded documents of one result together. With everything
    else at its limits the result's JSON stays below 1 MiB, more than which some clients refuse:
    base64 takes four thirds of these, which leaves 350,000 bytes for the rest."""
    max_resource_bytes: int = field(
        default=256 * 2**20, metadata=_env("MCP_NOTEBOOK_MAX_RESOURCE_BYTES", least=0)
    )
    """Bytes of memory for the originals of what results show only in part; the oldest expire."""
    allowed_roots: tuple[Path, ...] = field(default=(), metadata=_env("MCP_NOTEBOOK_ALLOWED_ROOTS"))
    """Folders whose files a tool may return as a `Path`, besides the notebook's own; several as in
    PATH, with ":" (on Windows ";") between."""

    kernel_id: str | None = field(default=None, metadata=_env("MCP_NOTEBOOK_KERNEL_ID"))
    """Set by a bridge for the headless kernel that it starts: the id of that kernel's record."""

    @property
    def records_folder(self) -> Path:
        """Where live kernels publish their records."""
        return self.home / "kernels"

    @property
    def schemas_folder(self) -> Path:
        """Where the schemas of tools are kept between starts."""
        return self.home / "schemas"

    @property
    def bridge_file(self) -> Path:
        """Where the user's background bridge publishes its record."""
        return self.home / "bridge.json"

    @property
    def token_path(self) -> Path:
        """The file that holds the token."""
        return self.token_file or self.home / "token"

    @classmethod
    def from_environment(
        cls,
        env: Mapping[str, str] | None = None,
        **given: Any,
    ) -> Self:
        """Build the settings from what was given (None counts as not given), then the environment.

        Args:
            env: Environment to read; the process's own if None. An empty variable counts as unset.
            **given: Values of fields, from the command line.

        Raises:
            SettingsError: A value cannot be used.
        """
        env = os.environ if env is None else env
        types = get_type_hints(cls)
        unknown = given.keys() - types.keys()
        if unknown:
            raise TypeError(f"Settings has no field {', '.join(sorted(unknown))}")
        values: dict[str, Any] = {}
        for option in fields(cls):
            variable = option.metadata["env"]
            if given.get(option.name) is not None:
                source, value = f"--{option.name.replace('_', '-')}", given[option.name]
            elif env.get(variable):
                source, value = variable, env[variable]
            else:
                continue
            values[option.name] = _checked(option, types[option.name], value, source)
        return cls(**values)

    def environment(self) -> dict[str, str]:
        """Return the variables that give a child process these settings; not its record's id.

        With the token, if one is set: a process's environment is the user's own to read.
        """
        values = {
            option.metadata["env"]: getattr(self, option.name)
            for option in fields(self)
            if option.name != "kernel_id"
        }
        return {
            variable: os.pathsep.join(_as_text(part) for part in value)
            if isinstance(value, tuple)
            else _as_text(value)
            for variable, value in values.items()
            if value is not None
        }


def _as_text(value: object) -> str:
    # A child may run in another folder, where a relative path would mean another file.
    return str(value.absolute() if isinstance(value, Path) else value)


def _parts(value: object) -> list[str]:
    return [part for part in str(value).split(os.pathsep) if part]


def _checked(
    option: Field[Any],
    kind: Any,
    value: object,
    source: str,
) -> object:
    from pydantic import Field as Bounds  # noqa: PLC0415 - keeps the import cheap
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    bounds = Bounds(ge=option.metadata["ge"], le=option.metadata["le"], allow_inf_nan=False)
    has_bounds = option.metadata["ge"] is not None or option.metadata["le"] is not None
    adapter: TypeAdapter[object] = TypeAdapter(Annotated[kind, bounds] if has_bounds else kind)
    several = isinstance(value, str) and isinstance(option.default, tuple)
    try:
        checked = adapter.validate_python(_parts(value) if several else value)
        # A variable set in a client's configuration has met no shell that would expand "~".
        if isinstance(checked, tuple):
            return tuple(path.expanduser() for path in checked)
        return checked.expanduser() if isinstance(checked, Path) else checked
    except (ValidationError, RuntimeError) as error:  # RuntimeError: "~" of an unknown user
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        shown = repr(str(value)) if option.repr else "***"
        raise SettingsError(f"{source}={shown} cannot be used: {reason}.") from None
