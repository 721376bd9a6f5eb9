"""The open notebooks of a home folder: their tools, and the notebooks that cannot be reached.

Runs on the command's event loop, and connects to kernels as a bridge does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mcp_notebook.bridge.shell_kernels import link_kernels
from mcp_notebook.discovery.records import Record, list_live_records
from mcp_notebook.doctor.findings import Finding, approve, complain, note
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.missing_tools import MissingTool
from mcp_notebook.text.wording import count

OPEN_ONE = (
    "Open a notebook and run `%load_ext mcp_notebook` and a cell that begins with `%%mcp_tool`."
)
"""The next step if no notebook is open."""
DECLARE_ONE = "Put `%%mcp_tool` above a cell with functions, and run it."
"""The next step if the open notebooks have no tools."""
_MOST_NAMES = 8
"""Maximum number of tools named on a line."""


@dataclass(frozen=True, kw_only=True)
class OpenNotebooks:
    """The open notebooks of a home folder."""

    tools: Mapping[str, Sequence[str]]
    """The tools of each reachable notebook, by the notebook's name."""
    failures: Sequence[MissingTool]
    """The unreachable notebooks."""

    @property
    def number(self) -> int:
        """The number of open notebooks."""
        return len(self.tools) + len(self.failures)


def list_open_records(home: Path) -> list[Record]:
    """Return the records of a home folder's open notebooks, without headless ones."""
    folder = replace(Settings(), home=home).records_folder
    return [record for record in list_live_records(folder) if record.owner == "user"]


async def ask_notebooks(settings: Settings) -> OpenNotebooks:
    """Connect to all open notebooks, and return their tools."""
    async with link_kernels(settings, None) as kernels:
        tools: dict[str, list[str]] = {}
        for link in kernels.links.open_links:
            tools[f"{kernels.names[link.record.id]}"] = []
        for entry in kernels.catalog.entries():
            tools.setdefault(kernels.names[entry.kernel_id], []).append(entry.name)
        return OpenNotebooks(tools=tools, failures=kernels.failures)


def describe_notebooks(notebooks: OpenNotebooks) -> list[Finding]:
    """Return a finding for each open notebook, or one that none is open."""
    if not notebooks.number:
        return [note("No open notebook has loaded mcp_notebook.", OPEN_ONE)]
    findings = []
    for name, tools in notebooks.tools.items():
        if tools:
            text = f"The notebook {name}: {count(len(tools), 'tool')} ({list_names(tools)})."
            findings.append(approve(text, tuple(tools)))
        else:
            findings.append(note(f"The notebook {name} is open but has no tools.", DECLARE_ONE))
    return findings + describe_failures(notebooks)


def describe_failures(notebooks: OpenNotebooks) -> list[Finding]:
    """Return a finding for each unreachable notebook."""
    return [
        complain(
            f"The notebook {failure.notebook} cannot be reached: {failure.reason}",
            failure.next_step,
        )
        for failure in notebooks.failures
    ]


def list_names(names: Sequence[str]) -> str:
    """Join names for a line: the first few, and the number of others."""
    more = len(names) - _MOST_NAMES
    return ", ".join([*names[:_MOST_NAMES], *([f"{more} more"] if more > 0 else [])])
