"""Asks the notebooks' end: open notebooks, the background bridge, and running Jupyter servers.

Runs on the command's event loop, and connects to kernels as a bridge does.
"""

from pathlib import Path

from jupyter_core.paths import jupyter_runtime_dir
from msgspec import Struct

from mcp_notebook._version import __version__
from mcp_notebook.bridge.shell_kernels import link_kernels
from mcp_notebook.discovery.records import read_bridge
from mcp_notebook.doctor.findings import (
    Finding,
    approve,
    complain,
    describe_tools,
    explain,
    note,
)
from mcp_notebook.doctor.probes import ask_status
from mcp_notebook.settings.private_files import read_private_json
from mcp_notebook.settings.settings import Settings

OPEN_ONE = (
    "Open a notebook and run `%load_ext mcp_notebook` and a cell that begins with `%%mcp_tool`."
)
"""The next step if no notebook has tools."""
_NOT_FOUND = 404


class _JupyterServer(Struct, frozen=True):
    """The members of the file by which a Jupyter server is found."""

    url: str


async def ask_notebooks(settings: Settings) -> list[Finding]:
    """Connect to the open notebooks of a home folder, and return their tools or what is wrong."""
    async with link_kernels(settings, None) as kernels:
        tools: dict[str, list[str]] = {}
        for link in kernels.links.open_links:
            tools[f"{kernels.names[link.record.id]}"] = []
        for entry in kernels.catalog.entries():
            tools.setdefault(kernels.names[entry.kernel_id], []).append(entry.name)
        failures = kernels.failures
    findings = [
        approve(f"The notebook {name}: {describe_tools(names)}.")
        if names
        else note(f"The notebook {name} is open but has no tools.", OPEN_ONE)
        for name, names in tools.items()
    ]
    findings += [
        complain(f"The notebook {one.notebook} cannot be reached: {one.reason}", one.next_step)
        for one in failures
    ]
    return findings or [note("No open notebook has loaded mcp_notebook.", OPEN_ONE)]


async def ask_bridge(settings: Settings) -> Finding:
    """Ask the background bridge whether it is there."""
    bridge = read_bridge(settings.bridge_file)
    if bridge is None:
        return note("No background bridge is running. Only HTTP needs one: `%mcp serve` starts it.")
    if bridge.version != __version__:
        return explain("old bridge", url=bridge.url, theirs=bridge.version, ours=__version__)
    if bridge.url.startswith("http:") and await ask_status("GET", bridge.url) is None:
        return explain("silent bridge", url=bridge.url)
    return approve(f"The background bridge serves at {bridge.url}.")


async def ask_jupyter_servers() -> list[Finding]:
    """Ask the user's running Jupyter servers whether they serve tools; no token is sent."""
    findings = []
    for file in sorted(Path(jupyter_runtime_dir()).glob("jpserver-*.json")):  # noqa: ASYNC240
        try:
            server = read_private_json(file, _JupyterServer)
        except (OSError, ValueError):
            continue
        status = await ask_status("GET", f"{server.url}mcp-notebook")
        if status == _NOT_FOUND:
            findings.append(explain("no extension", url=server.url))
        elif status is not None:
            where = f"The Jupyter server at {server.url} serves tools at /mcp-notebook."
            findings.append(approve(where))
    return findings
