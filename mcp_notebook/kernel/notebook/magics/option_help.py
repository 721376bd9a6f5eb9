"""Help on the options of a tool, for ``%%mcp_tool?`` and ``mcp_tool?``.

Pure. The texts come from the option table. They are built only on request: that parses source code,
which would slow down ``%load_ext``.
"""

import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_notebook.kernel.tools.options import OPTION_NAMES, OPTION_TYPES
from mcp_notebook.wire import messages

if TYPE_CHECKING:
    from mcp_notebook.kernel.tools.option_table import OptionRow

_WIDTH = 92
_PREFIX = (
    "Only for `%mcp_tool obj`: the prefix of the names of the tools, for an object "
    "instead of the one in `@mcp_tools(prefix=...)`."
)


def describe_line_options(kind: messages.Kind = "tool") -> str:
    """Return the help on the options of ``%%mcp_tool``, each with an example.

    Args:
        kind: "prompt" for those of ``%%mcp_prompt``, and so on.
    """
    from mcp_notebook.kernel.tools import option_table  # noqa: PLC0415 - see above

    rows = option_table.list_options(kind)
    python_only = ", ".join(f"`{row.name}`" for row in rows if not row.line)
    end = textwrap.fill(f"Only as keywords of `@mcp_{kind}`: {python_only}.", _WIDTH)
    groups = _describe_groups(
        [(row, format_entry(_format_head(row), row.text)) for row in rows if row.line],
        option_table.explain_safety(on_line=True) if kind == "tool" else "",
    )
    own = [format_entry("--prefix sales_", _PREFIX)] if kind == "tool" else []
    return "\n".join([groups, *own, "", end])


def describe_keywords(kind: messages.Kind = "tool") -> str:
    """Return the help on the keywords of ``@mcp_tool``, each with its type and default.

    Args:
        kind: "prompt" for those of ``@mcp_prompt``, and so on.
    """
    from mcp_notebook.kernel.tools import option_table  # noqa: PLC0415 - see above

    return _describe_groups(
        [
            (row, format_entry(f"{row.name}: {row.kind} (default: {row.default})", row.text))
            for row in option_table.list_options(kind)
        ],
        option_table.explain_safety(on_line=False) if kind == "tool" else "",
    )


def _describe_groups(entries: Sequence[tuple["OptionRow", str]], safety: str) -> str:
    common = [text for row, text in entries if not row.is_rare]
    rare = [text for row, text in entries if row.is_rare]
    explained = [textwrap.fill(safety, _WIDTH, break_on_hyphens=False), ""] if safety else []
    return "\n".join(["Common options:\n", *explained, *common, "", "Rare options:\n", *rare])


def extend_help(function: Callable[..., Any], describe: Callable[[], str]) -> None:
    """Extend the docstring that IPython's ``function?`` shows.

    Args:
        function: The function.
        describe: Returns the text after its docstring; called for each request.
    """
    docstring = inspect.getdoc(function)
    vars(function)["getdoc"] = lambda: f"{docstring}\n\n{describe()}"  # IPython's hook


def document_keywords(function: Callable[..., Any], kind: messages.Kind = "tool") -> None:
    """Give a function with ``**options`` a signature and help with all options of a kind."""
    first, *_ = inspect.signature(function).parameters.values()
    keywords = inspect.signature(OPTION_TYPES[kind]).parameters
    names = OPTION_NAMES[kind]
    vars(function)["__signature__"] = inspect.Signature([first, *(keywords[n] for n in names)])
    extend_help(function, partial(describe_keywords, kind))


def _format_head(row: "OptionRow") -> str:
    examples = ", ".join(row.line)
    is_flag = " " not in row.line[0]
    return f"{examples}  ({row.keyword} in Python)" if is_flag else examples


def format_entry(head: str, text: str) -> str:
    """Return a head line and an indented explanation, narrow enough for a notebook."""
    return "\n".join(_indent(head, 2)) + "\n" + "\n".join(_indent(text, 6))


def _indent(text: str, columns: int) -> Iterator[str]:
    space = " " * columns
    yield from textwrap.wrap(
        text, _WIDTH, initial_indent=space, subsequent_indent=space, break_on_hyphens=False
    )
