"""The options of a tool, `ToolOptions`, and their validation.

Runs in the user's kernel, at definition. Pure. The same options are keywords of ``@mcp_tool`` and
flags on the line of ``%%mcp_tool``.
"""

import os
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypedDict, get_args

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.schemas.validation_messages import format_value
from mcp_notebook.kernel.tools.own_views import Page, is_own, is_page, read_hosts
from mcp_notebook.settings.settings import ErrorDetail
from mcp_notebook.text.wording import spell_ascii
from mcp_notebook.wire import messages

RunMode: TypeAlias = Literal["main", "thread", "fork"]
"""Where a function runs: on the kernel's main thread between cells (coroutine functions: on its
event loop), in its own thread, even while a cell runs, or in a fork of the kernel."""
MAX_NAME = 64
"""Maximum length of a name: the strictest limit of models' APIs and of MCP's conformance suite."""
MAX_PREFIXED_NAME = MAX_NAME - len("mcp__notebook__")
"""Maximum length of a name that fits this limit even with the prefix that clients add."""
EPHEMERAL = "ephemeral"
"""The value of `cache` for a tool whose results must never be reused, not even by clients."""
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_NAME}}}")


class DaskClient(Protocol):
    """A ``distributed.Client`` for type checkers; this package does not import Dask."""

    def scheduler_info(self) -> Any:
        """Return information about the scheduler and its workers."""


_EXAMPLE = "for instance `pool.submit(work, x).result()`"
_CHOICES: Mapping[str, Sequence[Any]] = {
    **dict.fromkeys(("read_only", "destructive", "idempotent", "open_world"), (None, True, False)),
    **dict.fromkeys(("confirm", "flatten"), (True, False)),
    "task": (True, False, "only"),
    "run": get_args(RunMode),
    "errors": (None, *get_args(ErrorDetail)),
}
"""What options can be of which there are few values; None: the author did not set it."""


@dataclass(frozen=True, kw_only=True)
class ToolOptions:
    """The options that a tool's author can set.

    The fields' docstrings are shown to users: `kernel.tools.option_table` reads them.
    """

    kind: ClassVar[messages.Kind] = "tool"
    """What these are options of."""

    name: str | None = None
    """The tool's name for clients: 1 to 64 letters, digits, ``_`` and ``-``. Without it, the
    function's name is used."""
    title: str | None = None
    """A name for people, which clients may display in place of `name`."""
    description: str | None = None
    """What the tool does, for the model. Without it, the docstring is used, except for its sections
    on parameters, results and exceptions."""
    icons: Sequence[Any] = ()
    """Up to four pictures that clients can show beside the tool's name. Each is an `Icon`, an
    ``https:`` or ``data:`` address, or the path of an image file."""
    read_only: bool | None = None
    """Whether the tool only reads. Unless you set this, clients assume that it does not, and may
    ask the user before each call."""
    destructive: bool | None = None
    """Whether the tool may delete or overwrite something, rather than only add to it. Unless
    you set this, clients assume that it may."""
    idempotent: bool | None = None
    """Whether a second call with the same arguments changes nothing further. Unless you set
    this, clients assume that it does change something."""
    open_world: bool | None = None
    """Whether the tool reaches beyond the notebook, to the web for instance. Unless you set this,
    clients assume that it does."""
    confirm: bool = False
    """Whether a person is asked before each call: by the client if it can show a form (MCP's
    elicitation), otherwise in the notebook. Without an answer, the tool does not run."""
    requires: Sequence[str] = ()
    """Capabilities that a client must have declared; a call of any other client is refused before
    anything runs. ``"elicitation"`` is for a tool that cannot do without `ctx.elicit`; MCP's others
    are ``"roots"``, ``"sampling"`` and the identifiers of extensions, such as
    ``"io.modelcontextprotocol/ui"``."""
    examples: Sequence[Mapping[str, Any]] | Mapping[str, Any] = ()
    """Arguments of example calls, a list of dicts or a single dict, which the description shows to
    the model. They are validated when the tool is declared, and limited to 4,000 characters of
    JSON."""
    priority: float = 0
    """Tools with a higher priority are listed first; tools with the same priority keep
    the order in which they were declared."""
    related: Sequence[str] = ()
    """Names of tools that a model should know about when it reads this one. The description ends
    with them, as "See also"."""
    tags: Sequence[str] = ()
    """Words to group tools by. Clients find them in the tool's ``_meta``."""
    meta: Mapping[str, Any] | None = None
    """Your own ``_meta`` for the tool: a dict of JSON values. Its keys are those of a client
    (``openai/outputTemplate``) or yours, with a reversed domain: ``com.example/team``."""
    cache: float | str | None = None
    """How long clients may reuse a result for calls with the same arguments: seconds, or text such
    as ``"60s"`` or ``"5min"``, or ``"ephemeral"`` if not at all. Clients find it in the tool's
    ``_meta``. Only for tools with `read_only`."""
    input_schema: Mapping[str, Any] | None = None
    """JSON Schema 2020-12 of the arguments (an object), in place of the one that the signature
    gives. It is published unchanged, except that references to itself are written out to some
    depth; the function gets the arguments by keyword, as they were sent,
    and may take ``**arguments``. Patterns must not use look-around, so that no text can keep the
    kernel busy."""
    output_schema: bool | Mapping[str, Any] = False
    """JSON Schema 2020-12 of structured results, for tools that programs call: some assistants show
    their model nothing else of a result. True derives it from the return annotation."""
    flatten: bool = False
    """Whether clients pass the fields of the function's only parameter (a pydantic model, dataclass
    or TypedDict) as the tool's arguments, in place of one object."""
    ui: bool | Page | None = None
    """The live view beside a result in clients with MCP Apps. True: a table that a person sorts and
    filters, or a plot to zoom; False: none. Unless you set this, there is one if the return
    annotation is a table or a plot, or once a call has returned one. For a page of your own, name
    an HTML file beside the notebook (``"view.html"``), or a ``%%mcp_view`` cell (``"map"``).
    Its scripts use ``notebook.onresult(result => ...)`` (``result.data`` is what the tool
    returned, as JSON, ``result.text`` the text), ``await notebook.call("tool", {x: 1})`` and
    ``notebook.send("text for the model")``."""
    allow: Sequence[str] = ()
    """Hosts that the tool's own page (`ui`) may load scripts, pictures and data from, besides those
    of its ``%%mcp_view`` cell: ``"tiles.example.org"`` or ``"*.example.org"``. Without it, the page
    loads nothing."""
    run: RunMode = "main"
    """Where calls run. ``"main"``: on the kernel's main thread between cells, as if you had run a
    cell; coroutine functions run on the kernel's event loop. ``"thread"``: each call in a thread of
    its own, even while a cell runs. ``"fork"`` (Linux and macOS, with `read_only`): each call in a
    fork, a copy of the kernel, even while a cell runs; what it changes there is lost."""
    executor: "Executor | DaskClient | None" = None
    """An executor of ``concurrent.futures`` that runs the calls, such as a
    ``ProcessPoolExecutor``, or a Dask client (``distributed.Client``)."""
    timeout: float | str | None = None
    """How long a call may run before it is stopped: seconds, or text such as ``"30s"`` or
    ``"5min"``. Waiting for its turn does not count. Without it, the setting ``call_timeout``
    applies."""
    task: bool | Literal["only"] = False
    """Whether each call becomes a task at once, for clients that support MCP's tasks: these need
    not wait, and can fetch the result later, even after they have been restarted. Other clients
    wait; if the call takes long, they get a handle, and fetch the result with the tool
    ``notebook_result``. With ``"only"`` they are refused."""
    max_concurrency: int | None = None
    """How many calls of the tool may run at the same time; further calls wait. Without it, there is
    no limit; with ``run="fork"`` it is the number of processors, at least 2."""
    errors: ErrorDetail | None = None
    """What clients get of an error of the function: ``"full"``, with the lines of your code;
    ``"short"``, its type and message, with file names in place of paths; ``"masked"``, only that
    the call failed. You see all of it in the log. `ToolError` is always whole. Without it, the
    setting ``errors`` applies."""

    @property
    def completions(self) -> Mapping[str, Any]:
        """The author's sources of values for completion, by parameter; tools have none."""
        return {}

    @cached_property
    def run_mode(self) -> RunMode:
        """Where calls are handled: not on the main thread if an executor runs them."""
        return self.run if self.executor is None else "thread"

    @cached_property
    def concurrency_limit(self) -> int | None:
        """How many calls may run at the same time; None: any number."""
        if self.max_concurrency is None and self.run == "fork":
            return max(os.cpu_count() or 1, 2)
        return self.max_concurrency

    @cached_property
    def time_limit(self) -> float | None:
        """`timeout` in seconds."""
        return None if self.timeout is None else parse_duration(self.timeout)

    @cached_property
    def cache_time(self) -> float | None:
        """Seconds for which clients may reuse results; None: not said, or not at all."""
        return None if self.cache in (None, EPHEMERAL) else parse_duration(self.cache or 0)


@dataclass(frozen=True, kw_only=True)
class PromptOptions(ToolOptions):
    """The options of a prompt: those of `PROMPT_OPTIONS`; the others keep their defaults."""

    kind: ClassVar[messages.Kind] = "prompt"

    read_only: bool | None = True
    """A user who picks a prompt expects it to change nothing."""
    complete: Mapping[str, Any] = field(default_factory=dict)
    """The values that clients suggest for an argument, by parameter: a list, a function, or the
    name of something in the notebook, ``{"column": "df.columns"}``, which is read as it is now. A
    function without parameters is called; one with a parameter gets the other arguments, as a dict
    of texts. Without it, `Literal`, `Enum` and bool suggest their values."""

    @property
    def completions(self) -> Mapping[str, Any]:
        """The author's sources of values, by parameter."""
        return self.complete


PROMPT_OPTIONS = (
    *("name", "title", "description", "icons", "complete", "requires", "priority", "tags", "meta"),
    *("run", "executor", "timeout", "max_concurrency", "errors"),
)
"""The fields of `PromptOptions` that a prompt's author can set."""


@dataclass(frozen=True, kw_only=True)
class ResourceOptions(PromptOptions):
    """The options of a resource: those of `RESOURCE_OPTIONS`; the others keep their defaults."""

    kind: ClassVar[messages.Kind] = "resource"

    uri: str = ""
    """The URI, or a template whose variables are the function's parameters; written apart from the
    options."""
    mime_type: str | None = None
    """The MIME type of what the function returns, if it is always the same. Tables are written as
    ``text/csv``, ``application/json``, ``text/markdown`` or Parquet, as it says."""


RESOURCE_OPTIONS = (*PROMPT_OPTIONS, "mime_type")
"""The fields of `ResourceOptions` that are options of a resource."""
OPTION_NAMES: Mapping[messages.Kind, Sequence[str]] = {
    "tool": tuple(item.name for item in fields(ToolOptions)),
    "prompt": PROMPT_OPTIONS,
    "resource": RESOURCE_OPTIONS,
}
"""The options of each kind of declaration."""
OPTION_TYPES: Mapping[messages.Kind, type[ToolOptions]] = {
    each.kind: each for each in (ToolOptions, PromptOptions, ResourceOptions)
}


class _SharedKeywords(TypedDict, total=False):
    """The options that tools, prompts and resources have."""

    name: str | None
    title: str | None
    description: str | None
    icons: Sequence[Any]
    requires: Sequence[str]
    priority: float
    tags: Sequence[str]
    meta: Mapping[str, Any] | None
    run: RunMode
    executor: "Executor | DaskClient | None"
    timeout: float | str | None
    max_concurrency: int | None
    errors: ErrorDetail | None


class PromptKeywords(_SharedKeywords, total=False):
    """`PROMPT_OPTIONS` as keyword arguments, for signatures with ``Unpack``."""

    complete: Mapping[str, Any]


class ResourceKeywords(PromptKeywords, total=False):
    """`RESOURCE_OPTIONS` as keyword arguments, for signatures with ``Unpack``."""

    mime_type: str | None


class ToolKeywords(_SharedKeywords, total=False):
    """The fields of `ToolOptions` as keyword arguments, for signatures with ``Unpack``."""

    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None
    confirm: bool
    examples: Sequence[Mapping[str, Any]] | Mapping[str, Any]
    related: Sequence[str]
    cache: float | str | None
    input_schema: Mapping[str, Any] | None
    output_schema: bool | Mapping[str, Any]
    flatten: bool
    ui: bool | Page | None
    allow: Sequence[str]
    task: bool | Literal["only"]


def check_options(options: ToolOptions, name: str) -> None:
    """Reject invalid options and combinations.

    Args:
        options: The options that the author set.
        name: The tool's name.

    Raises:
        DefinitionError: An option is invalid, or two exclude each other.
    """
    _check_choices(options, name)
    _check_page(options, name)
    _check_requires(options, name)
    if options.run == "fork":
        _check_fork(options, name)
    _check_duration(options.timeout, "timeout", name)
    _check_cache(options, name)
    most = options.max_concurrency
    if most is not None and (type(most) is not int or most < 1):
        raise DefinitionError(
            f"`{name}`: `max_concurrency` must be a whole number, at least 1, not {most!r}."
        )
    if options.executor is not None and not _runs_calls(options.executor):
        raise DefinitionError(
            f"`{name}`: `executor` must be a concurrent.futures.Executor (such as a "
            f"ProcessPoolExecutor) or a Dask client (distributed.Client), not "
            f"{options.executor!r}. To use that, declare the tool with `run='thread'`, and have "
            f"its function submit the work and wait for it: {_EXAMPLE}."
        )


def _check_choices(options: ToolOptions, name: str) -> None:
    for option, choices in _CHOICES.items():
        value = getattr(options, option)
        if value in choices if isinstance(value, str) else any(value is each for each in choices):
            continue
        *others, last = [repr(choice) for choice in choices if choice is not None]
        raise DefinitionError(
            f"`{name}`: `{option}` must be {', '.join(others)} or {last}, not "
            f"{format_value(value)}."
        )


def _check_page(options: ToolOptions, name: str) -> None:
    if not (options.ui is None or isinstance(options.ui, bool) or is_page(options.ui)):
        raise DefinitionError(
            f"`{name}`: `ui` must be True, False, an HTML file or the name of a `%%mcp_view` "
            f"cell, not {options.ui!r}."
        )
    if read_hosts(options.allow, f"`{name}`") and not is_own(options.ui):
        raise DefinitionError(
            f"`{name}`: `allow` is for a page of your own: name it with `ui` (`--ui view.html`), "
            "or remove `allow`."
        )


def _check_requires(options: ToolOptions, name: str) -> None:
    words = options.requires
    if isinstance(words, str) or not isinstance(words, Sequence):
        raise DefinitionError(
            f"`{name}`: `requires` must be a list of clients' capabilities, like "
            f"`requires=['elicitation']`, not {words!r}."
        )
    for word in words:
        if not isinstance(word, str) or not (word in messages.CAPABILITIES or "/" in word):
            raise DefinitionError(
                f"`{name}`: `requires` has {word!r}; it can be "
                f"{', '.join(map(repr, messages.CAPABILITIES))} or the identifier of an extension, "
                "such as 'io.modelcontextprotocol/ui'."
            )
    if "elicitation" in words and (options.run == "fork" or options.executor is not None):
        place = "`run='fork'`" if options.executor is None else "`executor`"
        raise DefinitionError(
            f"`{name}`: `requires=['elicitation']` and {place} exclude each other, because another "
            "process cannot ask the user: write `run='thread'` (`--run thread`) instead."
        )


def _runs_calls(executor: Any) -> bool:
    return isinstance(executor, Executor) or is_instance(executor, "distributed.client.Client")


def _check_fork(options: ToolOptions, name: str) -> None:
    if not hasattr(os, "fork"):
        raise DefinitionError(
            f"`{name}`: `run='fork'` needs Linux or macOS, because this system cannot fork "
            "processes: write `run='thread'` (`--run thread`)."
        )
    if options.read_only is not True:
        raise DefinitionError(
            f"`{name}`: `run='fork'` is only for tools that change nothing, because changes in a "
            "fork of the kernel are lost: add `read_only=True` (`--read-only`), or write "
            "`run='thread'` (`--run thread`)."
        )
    if options.executor is not None:
        raise DefinitionError(
            f"`{name}`: `executor` and `run='fork'` both say where calls run: remove one of them."
        )


def _check_cache(options: ToolOptions, name: str) -> None:
    if options.cache is None or options.cache == EPHEMERAL:
        return
    _check_duration(options.cache, "cache", name)
    if options.read_only is not True:
        raise DefinitionError(
            f"`{name}`: `cache` is only for tools that change nothing, so that a call can be "
            "skipped: add `read_only=True` (`--read-only`), or remove `cache`."
        )


def check_name(name: Any) -> None:
    """Reject a name that clients would not accept.

    Raises:
        DefinitionError: The name is invalid; the message suggests a valid one.
    """
    if not isinstance(name, str):
        raise DefinitionError(
            f"A tool's name must be a string, not of type {type(name).__name__}: write "
            "`name='my_tool'`."
        )
    if _NAME.fullmatch(name):
        return
    suggestion = re.sub(r"[^A-Za-z0-9_-]+", "_", spell_ascii(name)).strip("_")[:MAX_NAME]
    suggestion = suggestion or "my_tool"
    quoted = name if len(name) <= 2 * MAX_NAME else f"{name[: 2 * MAX_NAME]}..."
    raise DefinitionError(
        f"{quoted!r} cannot be a tool's name: models' APIs accept 1 to {MAX_NAME} letters, digits, "
        f"`_` and `-`, and reject all tools if one name is invalid. Try "
        f"`--name {suggestion}` (in Python `name={suggestion!r}`)."
    )


def note_long_name(name: str) -> str | None:
    """Return a hint for the author of a name that is too long for clients with a prefix."""
    if len(name) <= MAX_PREFIXED_NAME:
        return None
    return (
        f"The name has {len(name)} characters. Many clients add a prefix such as "
        f"`mcp__notebook__`, and models' APIs accept {MAX_NAME} characters in all: use at most "
        f"{MAX_PREFIXED_NAME} (`--name`)."
    )


# -- durations -------------------------------------------------------------------------------------

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*")


def parse_duration(duration: float | str) -> float:
    """Return a duration in seconds.

    Args:
        duration: Seconds as a number, or text with a unit: ``"90"``, ``"500ms"``, ``"30s"``,
            ``"5min"`` (or ``"5m"``), ``"2h"``, ``"1d"``.

    Raises:
        ValueError: The text is not a duration.
    """
    if not isinstance(duration, str):
        return float(duration)
    match = _DURATION.fullmatch(duration.lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(duration)
    return float(match[1]) * _UNITS[match[2]]


def _check_duration(duration: float | str | None, option: str, name: str) -> None:
    try:
        usable = duration is None or (
            not isinstance(duration, bool) and 0 < parse_duration(duration) <= threading.TIMEOUT_MAX
        )
    except (TypeError, ValueError, OverflowError):
        usable = False
    if not usable:
        raise DefinitionError(
            f"`{name}`: `{option}` must be a time above 0: seconds, or a string like '30s' or "
            f"'5min', not {duration!r}."
        )
