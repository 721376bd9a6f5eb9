"""What an author can say about a tool besides its function: `ToolOptions`, one field for each row.

Runs in the user's kernel, at definition. The same options are keywords of ``@mcp_tool``
(`kernel.notebook.decorators`) and words on the line of ``%%mcp_tool``
(`kernel.notebook.magic_line`); this module checks them. What becomes of each is other modules'
business: `kernel.tools.metadata` (what clients are told), `kernel.schemas.output_schema`,
`kernel.calls.result_cache`, `kernel.calls.invoker` (how calls run).
"""

import math
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.context import LEVELS, LogLevel

RunMode: TypeAlias = Literal["main", "thread"]
"""Where a function runs: on the kernel's main thread between cells (coroutine functions: on its
event loop), or in a thread of its own, also while a cell runs."""
MAX_NAME = 64
"""Characters: the strictest limit among clients and MCP's own conformance suite."""
MIN_RESULT_CHARS = 200
"""Of fewer characters, nothing would be left beside the sentence on what was cut."""
EPHEMERAL = "ephemeral"
"""The value of `cache` of a tool whose results are never to be given again, by nobody."""
_NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{MAX_NAME}}}")


@dataclass(frozen=True, kw_only=True)
class ToolOptions:
    """What an author can say about a tool besides its function."""

    name: str | None = None
    """Name for clients; the function's own if None."""
    title: str | None = None
    """Name for people."""
    description: str | None = None
    """In place of the docstring's text."""
    icons: Sequence[Any] = ()
    """Pictures for the tool: `Icon`, an ``https:`` or ``data:`` address, a path or a PIL image."""
    read_only: bool | None = None
    """It changes nothing. None, here and in the next three: the author does not say."""
    destructive: bool | None = None
    """It may destroy, not only add."""
    idempotent: bool | None = None
    """A second call with the same arguments changes nothing more."""
    open_world: bool | None = None
    """It deals with more than the notebook: the web, say."""
    examples: Sequence[Mapping[str, Any]] | Mapping[str, Any] = ()
    """Arguments of calls (or of one call), shown to the model in the description."""
    priority: float = 0
    """Tools of a higher priority are listed first."""
    related: Sequence[str] = ()
    """Names of tools that a model should know of when it reads of this one."""
    tags: Sequence[str] = ()
    """Words to group tools by."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """``_meta`` of the author's own, under reverse-DNS keys."""
    cache: float | str | None = None
    """Seconds that a result is given again for the same arguments (of read-only tools); or
    ``"ephemeral"``: a result is never given again, and clients are told so."""
    input_schema: Mapping[str, Any] | None = None
    """JSON Schema 2020-12 of the arguments, an object's, in place of the one that the signature
    gives. Published as it is; a ``default`` in it is only told to clients."""
    output_schema: bool | Mapping[str, Any] | None = None
    """JSON Schema of structured results; True: made from the return annotation, whatever it is;
    False: none; None: made from the return annotation where it says what a program could use."""
    validate_output: bool = True
    """Refuse a result that does not match the output schema."""
    flatten: bool = False
    """The fields of the function's one parameter, a model, are the tool's arguments."""
    run: RunMode = "main"
    """Where its calls run."""
    executor: Executor | None = None
    """Runs its calls; a thread waits for it."""
    timeout: float | str | None = None
    """Seconds (or "30s", "5min") that a call may run; None: as long as the settings allow."""
    max_concurrency: int | None = None
    """Calls that may run at once; None: any number."""
    max_result_chars: int | None = None
    """Characters of text in one result; None: as many as the settings allow."""
    logs: LogLevel | None = None
    """Log messages of this level and above become part of the result; None: none do."""

    @property
    def run_mode(self) -> RunMode:
        """Where calls are handled: not on the main thread if an executor runs them."""
        return self.run if self.executor is None else "thread"

    @property
    def time_limit(self) -> float | None:
        """`timeout` in seconds."""
        return None if self.timeout is None else seconds(self.timeout)

    @property
    def cache_time(self) -> float | None:
        """Seconds for which results are given again; None: they are not."""
        return None if self.cache in (None, EPHEMERAL) else seconds(self.cache or 0)


def check_options(options: ToolOptions, name: str, *, takes_context: bool) -> None:
    """Refuse options that mean nothing.

    Args:
        options: What the author said.
        name: The tool's name.
        takes_context: Whether the function has a parameter for the `Context`.

    Raises:
        DefinitionError: Names the tool, the option, and what it may be.
    """
    if options.run not in (*get_args(RunMode),):
        modes = " or ".join(map(repr, get_args(RunMode)))
        raise DefinitionError(f"`{name}`: `run` is {modes}, not {options.run!r}.")
    _check_duration(options.timeout, "timeout", name)
    _check_cache(options, name)
    for option, least in (("max_concurrency", 1), ("max_result_chars", MIN_RESULT_CHARS)):
        most = getattr(options, option)
        if most is not None and (type(most) is not int or most < least):
            raise DefinitionError(
                f"`{name}`: `{option}` is a whole number, at least {least:,}, not {most!r}."
            )
    for option in ("validate_output", "flatten"):
        if not isinstance(said := getattr(options, option), bool):
            raise DefinitionError(f"`{name}`: `{option}` is True or False, not {said!r}.")
    if options.logs is not None and options.logs not in (*LEVELS,):
        raise DefinitionError(f"`{name}`: `logs` is {', '.join(LEVELS)}, not {options.logs!r}.")
    if options.executor is not None and not isinstance(options.executor, Executor):
        raise DefinitionError(
            f"`{name}`: `executor` is a concurrent.futures.Executor (a ProcessPoolExecutor, say), "
            f"not {options.executor!r}."
        )
    if options.executor is not None and takes_context:
        raise DefinitionError(
            f"`{name}`: what an executor runs cannot have a `Context`: remove that parameter, or "
            'use `run="thread"`.'
        )


def _check_cache(options: ToolOptions, name: str) -> None:
    if options.cache is None or options.cache == EPHEMERAL:
        return
    try:
        time = 0.0 if isinstance(options.cache, bool) else seconds(options.cache)
    except (TypeError, ValueError, OverflowError):
        time = 0.0
    if not 0 < time < math.inf:
        raise DefinitionError(
            f"`{name}`: `cache` is a time, more than 0 (seconds, or a text like '60s' or '5min'), "
            f"or {EPHEMERAL!r}, not {options.cache!r}."
        )
    if options.read_only is not True:
        raise DefinitionError(
            f"`{name}`: `cache` is for tools that change nothing, whose calls may be left out: say "
            "so with `read_only=True` (`--read-only`), or leave `cache` out."
        )


def check_name(name: Any) -> None:
    """Refuse a name that clients would not accept.

    Raises:
        DefinitionError: With a name that would do.
    """
    if not isinstance(name, str):
        raise DefinitionError(
            f"A tool's name is a text, not of type {type(name).__name__}: write `name='my_tool'`."
        )
    if _NAME.fullmatch(name):
        return
    suggestion = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")[:MAX_NAME] or "my_tool"
    shown = name if len(name) <= 2 * MAX_NAME else f"{name[: 2 * MAX_NAME]}..."
    raise DefinitionError(
        f"{shown!r} cannot be a tool's name: MCP allows 1 to {MAX_NAME} letters, digits, `_`, `.` "
        f"and `-`. Try `--name {suggestion}` (in Python `name={suggestion!r}`)."
    )


# -- durations -------------------------------------------------------------------------------------

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*")


def seconds(duration: float | str) -> float:
    """Return a duration in seconds.

    Args:
        duration: Seconds as a number, or text with a unit: ``"90"``, ``"500ms"``, ``"30s"``,
            ``"5min"`` (or ``"5m"``), ``"2h"``, ``"1d"``.

    Raises:
        ValueError: It is no duration.
    """
    if not isinstance(duration, str):
        return float(duration)
    match = _DURATION.fullmatch(duration.lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(duration)
    return float(match[1]) * _UNITS[match[2]]


def _check_duration(duration: float | str | None, option: str, name: str) -> None:
    try:
        usable = duration is None or 0 < seconds(duration) <= threading.TIMEOUT_MAX
    except (TypeError, ValueError, OverflowError):
        usable = False
    if not usable:
        raise DefinitionError(
            f"`{name}`: `{option}` is a time, more than 0: seconds, or a text like '30s' or "
            f"'5min', not {duration!r}."
        )
