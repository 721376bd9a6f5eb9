"""The table of a tool's options: the source of the reference page and of the magic's help.

Runs wherever it is read: in the user's kernel for ``%%mcp_tool?``, in a script for the pages. An
option's description is the docstring of its field in `ToolOptions`; its notation in a notebook is
defined here.
"""

from collections.abc import Mapping
from dataclasses import fields

from msgspec import Struct, structs

from mcp_notebook.kernel.tools.options import OPTION_NAMES, PromptOptions, ToolOptions
from mcp_notebook.settings.values import read_docstrings
from mcp_notebook.wire import messages


class OptionRow(Struct, frozen=True):
    """The documentation of one option."""

    kind: str
    """Its type in words: "text", "a time"."""
    default: str
    """Its default in words: "the function's name", "no limit"."""
    keyword: str
    """An example for ``@mcp_tool(...)`` that means the same as the first of `line`."""
    line: tuple[str, ...] = ()
    """Examples for the line of ``%%mcp_tool``, one for each of its flags; none if it can only be
    written in Python."""
    name: str = ""
    """Keyword of ``@mcp_tool`` and of `Tool`."""
    text: str = ""
    """Its description: a few sentences with Markdown's backticks."""
    is_rare: bool = False
    """Whether few tools need it; rare options are in a second group."""


_MIME_TYPE = OptionRow(
    name="mime_type",
    kind="text",
    default="what suits the value",
    line=("--mime-type text/csv",),
    keyword='mime_type="text/csv"',
    text=(
        "The MIME type of the content, if it is always the same. A table is written as `text/csv` "
        "(the default), `application/json`, `text/markdown` or Parquet, as it says; data as "
        "`application/json`."
    ),
)


def list_options(kind: messages.Kind = "tool") -> tuple[OptionRow, ...]:
    """Return a row for each field of `ToolOptions`, in its order.

    Args:
        kind: "prompt" or "resource" for the rows of their options.
    """
    texts = _read_texts()
    rows = tuple(
        structs.replace(
            _FORMS[item.name],
            name=item.name,
            text=texts.get(item.name, ""),
            is_rare=item.name in _RARE,
        )
        for item in fields(ToolOptions if kind == "tool" else PromptOptions)
        if item.name in OPTION_NAMES[kind]
    )
    return (*rows, _MIME_TYPE) if kind == "resource" else rows


def explain_safety(*, on_line: bool) -> str:
    """Return the sentence that explains `read_only`, `destructive` and `confirm` together.

    Args:
        on_line: Whether to name the flags of the line instead of the keywords.
    """
    destructive, adds, reads, confirm = (
        ("--destructive", "--non-destructive", "--read-only", "--confirm")
        if on_line
        else ("destructive=True", "destructive=False", "read_only=True", "confirm=True")
    )
    return (
        f"A tool may delete and overwrite (`{destructive}`, the default), only add (`{adds}`), or "
        f"only read (`{reads}`); a person is asked before each call of a tool with `{confirm}` "
        "and, with the setting `confirm_destructive`, of each tool that may delete and overwrite."
    )


_RARE = frozenset(
    (
        *("icons", "idempotent", "open_world", "priority", "related", "tags", "meta"),
        *("input_schema", "flatten", "executor"),
        *("max_concurrency", "ui", "allow", "requires", "errors"),
    )
)
_FLAG = "True or False"
_UNSAID = "not specified"
_FORMS: Mapping[str, OptionRow] = {
    "name": OptionRow("text", "the function's name", 'name="sales"', ("--name sales",)),
    "title": OptionRow("text", "none", 'title="Sales"', ("--title Sales",)),
    "description": OptionRow(
        "text", "the docstring", 'description="Sales by year."', ("--description 'Sales by year.'",)
    ),
    "icons": OptionRow("list of icons", "none", 'icons=["sun.png"]', ("--icon sun.png",)),
    "read_only": OptionRow(_FLAG, _UNSAID, "read_only=True", ("--read-only",)),
    "destructive": OptionRow(
        _FLAG, _UNSAID, "destructive=True", ("--destructive", "--non-destructive")
    ),
    "idempotent": OptionRow(_FLAG, _UNSAID, "idempotent=True", ("--idempotent",)),
    "open_world": OptionRow(_FLAG, _UNSAID, "open_world=False", ("--closed-world",)),
    "confirm": OptionRow(_FLAG, "False", "confirm=True", ("--confirm",)),
    "complete": OptionRow(
        "dict of lists, functions or names",
        "from `Literal`, `Enum` and bool",
        'complete={"column": "df.columns"}',
        ("--complete column=df.columns",),
    ),
    "requires": OptionRow(
        "list of capabilities",
        "none",
        'requires=["elicitation"]',
        ("--requires elicitation",),
    ),
    "examples": OptionRow(
        "list of dicts, or a dict",
        "none",
        'examples=[{"year": 2015}]',
        ("--example year=2015",),
    ),
    "priority": OptionRow("number", "0", "priority=1", ("--priority 1",)),
    "related": OptionRow(
        "list of names", "none", 'related=["costs", "staff"]', ("--related costs,staff",)
    ),
    "tags": OptionRow("list of words", "none", 'tags=["rain", "snow"]', ("--tag rain,snow",)),
    "meta": OptionRow("dict", "none", 'meta={"com.example/owner": "me"}'),
    "cache": OptionRow('a time, or `"ephemeral"`', "not said", 'cache="60s"', ("--cache 60s",)),
    "input_schema": OptionRow(
        "JSON Schema (dict)", "made from the signature", 'input_schema={"type": "object"}'
    ),
    "output_schema": OptionRow(
        "True, False, or JSON Schema (dict)",
        "False",
        "output_schema=True",
        ("--output-schema",),
    ),
    "flatten": OptionRow(_FLAG, "False", "flatten=True", ("--flatten",)),
    "ui": OptionRow(
        "True, False, an HTML file, or a view's name",
        "True for tables and plots",
        'ui="view.html"',
        ("--ui view.html", "--ui", "--no-ui"),
    ),
    "allow": OptionRow(
        "list of hosts", "none", 'allow=["tiles.example.org"]', ("--allow tiles.example.org",)
    ),
    "run": OptionRow(
        '`"main"`, `"thread"` or `"fork"`',
        '`"main"`',
        'run="thread"',
        ("--run thread",),
    ),
    "executor": OptionRow("executor", "none: see `run`", "executor=pool"),
    "timeout": OptionRow(
        "a time", "the setting `call_timeout`", 'timeout="60s"', ("--timeout 60s",)
    ),
    "task": OptionRow('True, False or `"only"`', "False", "task=True", ("--task", "--task-only")),
    "max_concurrency": OptionRow(
        "whole number", "no limit", "max_concurrency=2", ("--max-concurrency 2",)
    ),
    "errors": OptionRow(
        '`"full"`, `"short"` or `"masked"`',
        "the setting `errors`",
        'errors="short"',
        ("--errors short",),
    ),
}


def _read_texts() -> dict[str, str]:
    """Return the docstrings of the fields of options, as Markdown."""
    texts = read_docstrings(PromptOptions) | read_docstrings(ToolOptions)
    return {name: text.replace("``", "`") for name, text in texts.items()}
