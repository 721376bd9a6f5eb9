"""Lists or connects clients for the side panel in VS Code; not a command for people.

Runs in a process of its own, as ``python -m mcp_notebook.cli.panel_clients`` in the folder of the
window: without arguments, it prints what is found as JSON; with a client's name, and perhaps the
word "replace", it connects the client. The implementation is in `clients.panel_clients`.
"""

import json
import platform
import sys

from mcp_notebook.clients.client import Machine
from mcp_notebook.clients.panel_clients import connect_client, list_clients
from mcp_notebook.errors import McpNotebookError
from mcp_notebook.text.terminal import print_note, print_output

if __name__ == "__main__":
    machine = Machine.current()
    try:
        match sys.argv[1:]:
            case []:
                found = {"place": "local", "machine": platform.node()} | list_clients(machine)
                print_output(json.dumps(found))
            case [client, *words]:
                print_output(connect_client(client, machine, replace="replace" in words))
    except McpNotebookError as error:
        print_note(str(error))
        sys.exit(1)
