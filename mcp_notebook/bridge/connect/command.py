"""``mcp-notebook connect``: starts the remote server if necessary, then forwards messages.

Runs on the event loop of the command's process. While the server starts, each step is printed, and
sent as progress to a client that asks for it with its first requests. A client that disconnects
meanwhile ends the command. So does an error before messages can be forwarded. It is also sent to
the client as the answer to its first requests, because not every client shows what a command
prints.
"""

import contextlib

import anyio

from mcp_notebook.bridge.access.own_token_file import read_token
from mcp_notebook.bridge.connect.addresses import (
    Address,
    BinderRepository,
    check_encryption,
    read_address,
)
from mcp_notebook.bridge.connect.client_lines import ClientLines
from mcp_notebook.bridge.connect.credentials import Credentials, read_credentials
from mcp_notebook.bridge.connect.messages import (
    InvalidMessage,
    make_error,
    make_progress,
    read_line,
)
from mcp_notebook.bridge.connect.relay import Relay
from mcp_notebook.bridge.connect.remote import Remote, open_http
from mcp_notebook.bridge.connect.starter import Starter, Tell
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
_MAX_AHEAD = 100
"""Lines of a client to read before the first is answered."""


async def connect(
    settings: Settings,
    text: str,
    token_place: str | None,
    *,
    run: bool = False,
    insecure: bool = False,
) -> None:
    """Forward messages between stdin, stdout and a remote server until stdin ends.

    Args:
        settings: All options.
        text: The address, as the user gave it.
        token_place: As in `read_credentials`.
        run: Whether to run the notebook of the address if its tools are not there.
        insecure: Whether an unencrypted connection to another machine is allowed.

    Raises:
        McpNotebookError: The server cannot be used.
    """
    async with ClientLines(settings.max_request_bytes) as lines:
        try:
            address = read_address(text)
            credentials = _choose_credentials(settings, address, token_place)
            place = address.binder if isinstance(address, BinderRepository) else address.server
            check_encryption(place, insecure=insecure)
            async with open_http(runs=run) as http:
                starter = Starter(
                    http, address, credentials, home=settings.home, run=run, insecure=insecure
                )
                remote = await _wait_for(starter, lines, settings.max_request_bytes)
                if remote is None:
                    return
                print_note(f"Connected to {remote.url}.{_HINT if lines.is_terminal else ''}")

                async def restart(tell: Tell) -> None:
                    remote.move(await starter.find(tell))

                await Relay(lines, remote, settings.max_request_bytes, restart).run()
        except McpNotebookError as error:
            await _refuse(lines, str(error), settings.max_request_bytes)
            raise


async def _wait_for(starter: Starter, lines: ClientLines, max_bytes: int) -> Remote | None:
    """Return the endpoint, and tell the client each step; None if the client has disconnected."""
    remote: Remote | None = None
    failure: McpNotebookError | None = None
    tokens: list[str | int] = []
    """Of the client's requests that ask for progress."""
    steps = 0

    def tell(text: str) -> None:
        nonlocal steps
        print_note(text)
        steps += 1
        for token in tokens:
            lines.send_soon(make_progress(token, steps, text))

    async def follow_client() -> None:
        for number in range(_MAX_AHEAD):
            line = await lines.read_ahead()
            if line is None:
                if number:  # otherwise there was no client: show what is wrong
                    tasks.cancel_scope.cancel()
                return
            with contextlib.suppress(InvalidMessage):  # the relay answers it
                token = read_line(line, max_bytes).progress_token
                tokens.extend(() if token is None else [token])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow_client)
        try:
            remote = await starter.find(tell)
        except McpNotebookError as error:  # the task group would raise a group
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return remote


def _choose_credentials(
    settings: Settings, address: Address | BinderRepository, token_place: str | None
) -> Credentials:
    credentials = read_credentials(token_place)
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
