"""Finds notebooks whose kernels cannot be linked or have recently ended, with the reason.

Runs in the process of a command, or in a thread of a bridge when a client calls an unknown tool: a
kernel may have ended before the bridge started, and its departure note names no tools. Reads only
the records and the notes beside them; errors of linking a kernel come from `shell_kernels`.
"""

import socket

from mcp_notebook.discovery.departures import Departure, list_departures
from mcp_notebook.discovery.records import IgnoredFiles, is_alive, read_records
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.missing_tools import (
    MissingTool,
    explain_dead_kernel,
    explain_departed_kernel,
    explain_other_bridge,
    explain_other_machine,
)


def find_absent_notebooks(settings: Settings, *, also_back: bool = False) -> list[MissingTool]:
    """Return the notebooks with a record or a note, but without a kernel that can be linked here.

    Args:
        settings: Where the records are.
        also_back: Also return notebooks that ended recently and are open again, perhaps without
            having run all their cells.
    """
    absent = []
    records = read_records(settings.records_folder, IgnoredFiles())
    here = [record for record in records if record.host == socket.gethostname()]
    live = {record.notebook or record.name for record in here if is_alive(record)}
    for record in records:
        if record not in here:
            absent.append(explain_other_machine(record.name, record.host))
        elif (record.notebook or record.name) not in live:
            absent.append(explain_dead_kernel(record.name))
        elif record.owner == "bridge" and is_alive(record):
            absent.append(explain_other_bridge(record.name))
    names = {record.notebook or record.name for record in records}
    absent += [
        _explain_departure(departure)
        for departure in list_departures(settings.records_folder)
        if also_back or (departure.notebook or departure.name) not in names
    ]
    return list(dict.fromkeys(absent))  # several kernels may run the same notebook


def find_departed_notebooks(settings: Settings) -> list[MissingTool]:
    """Return the notebooks that ended recently, latest first; they may be open again."""
    return [_explain_departure(each) for each in list_departures(settings.records_folder)]


def has_kernel(settings: Settings, kernel_id: str) -> bool:
    """Return whether a kernel is alive; kernels on other machines count as alive."""
    return any(
        record.id == kernel_id and (record.host != socket.gethostname() or is_alive(record))
        for record in read_records(settings.records_folder)
    )


def _explain_departure(departure: Departure) -> MissingTool:
    if departure.reason is None:
        return explain_dead_kernel(departure.name)
    return explain_departed_kernel(departure.name, departure.reason, departure.at)
