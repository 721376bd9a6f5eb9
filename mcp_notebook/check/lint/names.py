"""Names that clients and models' APIs cut or refuse, as the source has them.

Pure. The limits are those of `kernel.tools.options`, which refuses such a name when the cell runs.
"""

import re
from collections.abc import Iterator

from mcp_notebook.check.findings import Finding
from mcp_notebook.check.lint.sources import Places, SourceTool
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.options import MAX_NAME, MAX_PREFIXED_NAME, check_name
from mcp_notebook.text.missing_tools import RESERVED_NAMES


def check_names(tool: SourceTool, places: Places) -> Iterator[Finding]:
    """Yield what clients do with a tool's name."""
    try:
        check_name(tool.name)
    except DefinitionError:
        yield places.make_finding(
            tool.name,
            rule="refused-name",
            severity="error",
            reason=_describe_refusal(tool.name),
            advice=f"Name it `{_suggest(tool.name)}`.",
        )
        return
    if tool.name in RESERVED_NAMES:
        yield places.make_finding(
            tool.name,
            rule="refused-name",
            severity="error",
            reason="The name is that of a tool of mcp-notebook, so it is served under another one.",
            advice="Give it a name of its own.",
        )
    elif len(tool.name) > MAX_PREFIXED_NAME:
        yield places.make_finding(
            tool.name,
            rule="long-name",
            severity="warning",
            reason=(
                f"The name has {len(tool.name)} characters. With a prefix such as "
                f"`mcp__notebook__` it is longer than the {MAX_NAME} that models' APIs take, and "
                "clients cut it or leave the tool out."
            ),
            advice=f"Use at most {MAX_PREFIXED_NAME} characters (`--name`).",
        )


def _describe_refusal(name: str) -> str:
    if len(name) > MAX_NAME:
        return (
            f"The name has {len(name)} characters, and models' APIs refuse all tools of a request "
            f"if one name has more than {MAX_NAME}."
        )
    wrong = sorted(set(re.sub(r"[A-Za-z0-9_-]", "", name)))
    return (
        f"The name has {', '.join(map(repr, wrong))}, and models' APIs take letters, digits, `_` "
        "and `-`. Clients rename it, each in its own way, or lose all tools."
    )


def _suggest(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:MAX_PREFIXED_NAME] or "my_tool"
