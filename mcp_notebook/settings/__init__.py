"""All settings: `Settings`, with default, unit and environment variable of each.

`values` reads and checks them; `limits` has those that bound what clients may ask for. Any process
may import this; nothing here is kept for the process.
"""

from mcp_notebook.settings.settings import (
    DEFAULT_PORT,
    SERVER_PATH,
    ArgumentsInAudit,
    Settings,
    TableFormat,
    list_sources,
    list_unknown_variables,
)

__all__ = [
    "DEFAULT_PORT",
    "SERVER_PATH",
    "ArgumentsInAudit",
    "Settings",
    "TableFormat",
    "list_sources",
    "list_unknown_variables",
]
