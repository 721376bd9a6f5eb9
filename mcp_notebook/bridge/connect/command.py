"""``mcp-notebook connect``: finds the remote server, then forwards the client's messages.

Runs on the event loop of the command's process. An error before messages can be forwarded ends the
command. It is also sent to the client as the answer to its first requests, because not every client
shows what a command prints.
"""

import anyio

from mcp_notebook.bridge.access.own_token_file import read_token
from mcp_notebook.bridge.connect.addresses import (
    Address,
    BinderRepository,
    check_encryption,
    read_address,
)
from mcp_notebook.bridge.connect.binder import LaunchFile, find_launch
from mcp_notebook.bridge.connect.client_lines import ClientLines
from mcp_notebook.bridge.connect.credentials import Credentials, TokenSource
from mcp_notebook.bridge.connect.find_endpoint import find_endpoint
from mcp_notebook.bridge.connect.messages import InvalidMessage, make_error, read_line
from mcp_notebook.bridge.connect.relay import Relay
from mcp_notebook.bridge.connect.remote import open_http
from mcp_notebook.discovery.records import read_bridge
from mcp_notebook.errors import McpNotebookError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note

_HINT = (
    " This command is started by an MCP client, which talks to it over stdin and stdout. Press "
    "Ctrl-C to stop it."
)
_FIRST_LINE_LIMIT = 10.0
"""Seconds to wait for the first request of a client, to answer it with the error."""
_NEXT_LINE_LIMIT = 2.0


async def connect(
    settings: Settings, text: str, source: TokenSource, *, insecure: bool = False
) -> None:
    """Forward messages between stdin, stdout and a remote server until stdin ends.

    Args:
        settings: All options.
        text: The address, as the user gave it.
        source: Where the token is.
        insecure: Whether an unencrypted connection to another machine is allowed.

    Raises:
        McpNotebookError: The server cannot be used.
    """
    async with ClientLines(settings.max_request_bytes) as lines:
        try:
            address = read_address(text)
            credentials = _choose_credentials(settings, address, source)
            place = address.binder if isinstance(address, BinderRepository) else address.server
            check_encryption(place, insecure=insecure)
            async with open_http() as http:
                if isinstance(address, BinderRepository):
                    file = LaunchFile(settings.home, address)
                    remote = await find_launch(http, address, credentials, file, insecure=insecure)
                else:
                    remote = await find_endpoint(http, address, credentials)
                print_note(f"Connected to {remote.url}.{_HINT if lines.is_terminal else ''}")
                await Relay(lines, remote, settings.max_request_bytes).run()
        except McpNotebookError as error:
            await _refuse(lines, str(error), settings.max_request_bytes)
            raise


def _choose_credentials(
    settings: Settings, address: Address | BinderRepository, source: TokenSource
) -> Credentials:
    credentials = source.read()
    if credentials is not None:
        return credentials
    if isinstance(address, Address) and address.token:
        print_note(
            "The address contains a token, which every user of this machine can read in the list "
            "of processes. Write it to a file that only you can read, name that file with "
            "--token-file, and remove ?token=... from the address."
        )
        return Credentials(address.token, "the address")
    bridge = read_bridge(settings.bridge_file)
    if isinstance(address, Address) and bridge is not None and bridge.url in address.endpoints:
        return Credentials(read_token(settings), settings.token_place)
    return Credentials()


async def _refuse(lines: ClientLines, reason: str, max_bytes: int) -> None:
    """Answer the requests of a client with an error until it disconnects or stops sending."""
    limit = _FIRST_LINE_LIMIT
    while not lines.is_terminal:
        line = None
        with anyio.move_on_after(limit):
            line = await lines.receive()
        if line is None:
            return
        try:
            message = read_line(line, max_bytes)
        except InvalidMessage:
            continue
        if message.is_request:
            await lines.send(make_error(message.id, reason))
            limit = _NEXT_LINE_LIMIT
