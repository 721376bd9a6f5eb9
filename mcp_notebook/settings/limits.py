"""The limits: what clients may ask for at most, and how large results and logs may be.

There are three sets of numbers, and a TOML file may change single ones. Runs in every process;
reads only that file. Each limit is enforced where its work is done.
"""

import math
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.values import describe_variable
from mcp_notebook.text.wording import suggest

LIMITS_VARIABLE = "MCP_NOTEBOOK_LIMITS"
"""The variable with the name of a set or the path of a file."""
SETS = ("strict", "normal", "open")
"""For shared endpoints; the default; for a machine of one's own."""
_BASE = "base"
"""The key of a file that names the set for all other limits."""


def _limit(
    normal: float,
    *,
    least: float,
    most: float | None = None,
    strict: float | None = None,
    open_: float | None = None,
) -> Any:
    """Return the field of a limit: its numbers in all sets, and its bounds."""
    sets = {
        "strict": normal if strict is None else strict,
        "normal": normal,
        "open": normal if open_ is None else open_,
    }
    metadata = describe_variable(LIMITS_VARIABLE, least=least, most=most) | {"sets": sets}
    return field(default=normal, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits. `make_reference.py` turns the strings below the fields into documentation."""

    max_caller_calls_per_minute: int = _limit(60_000, strict=600, open_=600_000, least=1)
    """Calls of tools per minute and caller; requests of any kind may be twice as many, and all
    callers together may make eight times as many. A caller is the holder of a token, or the user
    who started `mcp-notebook stdio`. The budget of an unused minute may be spent at once."""
    max_caller_calls: int = _limit(512, strict=16, open_=4_096, least=1)
    """Running and waiting calls of one caller; also its open streams, and its HTTP sessions unless
    the caller is you. All callers together may have eight times as many calls."""
    max_waiting_calls: int = _limit(64, strict=32, open_=1_000, least=1)
    """Running and waiting calls in one kernel, including tasks. Any caller except you may have half
    of them, and all others together three quarters. Further calls fail with "busy"."""
    max_request_bytes: int = _limit(
        4 * 2**20, strict=2**20, open_=32 * 2**20, least=2**16, most=32 * 2**20
    )
    """Bytes of one request. The default leaves room for pictures and tables as arguments."""
    task_ttl: float = _limit(3_600.0, strict=900.0, open_=86_400.0, least=1, most=366 * 86_400)
    """Seconds that a kernel keeps a finished task and its result, and that a task waits for the
    answer to a question."""
    max_result_chars: int = _limit(25_000, least=200)
    """Characters of text in one result. Longer texts are shortened in the middle, with a note. Of
    structured content, the first items are sent, as far as they match the tool's output schema."""
    max_resource_bytes: int = _limit(256 * 2**20, strict=64 * 2**20, open_=2 * 2**30, least=0)
    """Bytes of memory in a kernel for the results of tasks and the originals of shortened results.
    Beyond it, the least recently used originals expire, then the oldest results of tasks."""
    audit_max_bytes: int = _limit(60 * 2**20, strict=200 * 2**20, open_=60 * 2**20, least=24_576)
    """Bytes of all files of the audit log together. Beyond it, the oldest are deleted."""


DEFAULT_LIMITS = Limits()
"""The default limits."""


def is_limit(setting: Field[Any]) -> bool:
    """Return whether a field of `Settings` is a limit, which has no variable of its own."""
    return "sets" in setting.metadata


def read_limits(chosen: str, source: str) -> tuple[str, dict[str, tuple[Any, str]]]:
    """Return the limits of a set or a file.

    Args:
        chosen: The name of a set, or the path of a file.
        source: The option or variable with this value.

    Returns:
        The name of the set, or the absolute path of the file; and the value and source of each
        limit, by name, except for limits that a file leaves at their default.

    Raises:
        SettingsError: No such set or file exists, or the file is not valid.
    """
    if chosen in SETS:
        return chosen, _list_set(chosen, source)
    file, table = _read_file(chosen, source)
    base = table.pop(_BASE, None)
    if base is not None and base not in SETS:
        raise SettingsError(
            f"{_BASE} = {base!r} in {file} is not valid: it must be one of {', '.join(SETS)}."
        )
    limits = {} if base is None else _list_set(base, str(file))
    known = {limit.name: limit for limit in fields(Limits)}
    for name, value in table.items():
        if name not in known:
            close = suggest(name, known)
            hint = f"Did you mean {close}?" if close else f"The limits are {', '.join(known)}."
            raise SettingsError(f"Unknown limit {name!r} in {file}. {hint}")
        limits[name] = _check(known[name], value, file), str(file)
    return str(file), limits


def _list_set(name: str, source: str) -> dict[str, tuple[Any, str]]:
    return {limit.name: (limit.metadata["sets"][name], source) for limit in fields(Limits)}


def _read_file(chosen: str, source: str) -> tuple[Path, dict[str, Any]]:
    import tomllib  # noqa: PLC0415 - rarely needed, and every kernel imports this module

    wrong, file = f"{source}={chosen!r} is not valid", Path(chosen)
    try:
        file = file.expanduser().absolute()
        return file, tomllib.loads(file.read_text("utf-8"))
    except (OSError, RuntimeError) as error:  # RuntimeError: "~user" with an unknown user
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(
            f"{wrong}: it must be {', '.join(SETS)}, or the path of a TOML file, but {file} cannot "
            f"be read ({reason})."
        ) from None
    except ValueError as error:  # of TOML, or not UTF-8
        raise SettingsError(
            f"{wrong}: {file} is not TOML ({error}). Write each limit on a line, such as "
            "`max_caller_calls = 100`."
        ) from None


def _check(limit: Field[Any], value: object, file: Path) -> float:
    """Check a number from a file.

    Raises:
        SettingsError: It is not a number, or out of bounds.
    """
    least, most = limit.metadata["ge"], limit.metadata["le"]
    is_whole = isinstance(limit.default, int)
    kinds = int if is_whole else int | float
    if (
        not isinstance(value, kinds)
        or isinstance(value, bool)
        or not math.isfinite(value)
        or value < least
        or (most is not None and value > most)
    ):
        bounds = f"from {least:,} to {most:,}" if most is not None else f"of at least {least:,}"
        raise SettingsError(
            f"{limit.name} = {value!r} in {file} is not valid: it must be a "
            f"{'whole ' * is_whole}number {bounds}."
        )
    return value if is_whole else float(value)
