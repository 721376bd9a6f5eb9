"""The open notebooks of a home folder: what each offers, and which ones no client can reach.

Runs on the command's event loop, and links the kernels as a bridge does.
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
"""What to do where no notebook is open."""
_MOST_NAMES = 8
"""Tools that a line names."""


@dataclass(frozen=True, kw_only=True)
class OpenNotebooks:
    """What the kernels of a home folder offer now."""

    tools: Mapping[str, Sequence[str]]
    """The names of the tools of each notebook that was linked, by the notebook's name."""
    failures: Sequence[MissingTool]
    """The notebooks that were not."""

    @property
    def number(self) -> int:
        """How many are open."""
        return len(self.tools) + len(self.failures)


def list_open_records(home: Path) -> list[Record]:
    """Return the records of the notebooks that somebody has open, of a home folder."""
    folder = replace(Settings(), home=home).records_folder
    return [record for record in list_live_records(folder) if record.owner == "user"]


async def ask_notebooks(settings: Settings) -> OpenNotebooks:
    """Link all open notebooks, and return what they offer."""
    async with link_kernels(settings, None) as kernels:
        tools: dict[str, list[str]] = {}
        for link in kernels.links.open_links:
            tools[f"{kernels.names[link.record.id]}"] = []
        for entry in kernels.catalog.entries():
            tools.setdefault(kernels.names[entry.kernel_id], []).append(entry.name)
        return OpenNotebooks(tools=tools, failures=kernels.failures)


def describe_notebooks(notebooks: OpenNotebooks) -> list[Finding]:
    """Return a finding for each open notebook, or that there is none."""
    if not notebooks.number:
        return [note("No notebook is open that has loaded mcp_notebook.", OPEN_ONE)]
    findings = []
    for name, tools in notebooks.tools.items():
        if tools:
            text = f"Notebook {name}: {count(len(tools), 'tool')} ({list_names(tools)})."
            findings.append(approve(text, tuple(tools)))
        else:
            findings.append(
                note(
                    f"Notebook {name} is open and has no tools.",
                    "Put `%%mcp_tool` above a cell with functions, and run it.",
                )
            )
    return findings + describe_failures(notebooks)


def describe_failures(notebooks: OpenNotebooks) -> list[Finding]:
    """Return a finding for each notebook that cannot be linked."""
    return [
        complain(f"Notebook {failure.notebook} is not linked: {failure.reason}", failure.next_step)
        for failure in notebooks.failures
    ]


def list_names(names: Sequence[str]) -> str:
    """Return names for a line: the first ones, and how many more there are."""
    more = len(names) - _MOST_NAMES
    return ", ".join([*names[:_MOST_NAMES], *([f"{more} more"] if more > 0 else [])])
