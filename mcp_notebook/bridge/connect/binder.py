"""Starts Jupyter servers on Binder from a repository, and reuses those that run.

Runs on the event loop of `mcp-notebook connect`. Clients start their commands often, some twice at
once, and each new server would build for minutes and lack everything computed before. So the URL
and token of a repository's server are kept in a private file, and a lock lets one process at a time
start it.

BinderHub's build API: ``GET /build/PROVIDER/REPO/REF`` streams events; the event of the phase
``ready`` has the URL and the token of a Jupyter server
(https://binderhub.readthedocs.io/en/latest/api.html).
"""

import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import anyio
import httpx2

from mcp_notebook.bridge.connect.addresses import Address, BinderRepository, check_encryption
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.failures import explain_status
from mcp_notebook.bridge.connect.find_endpoint import find_endpoint
from mcp_notebook.bridge.connect.messages import JsonObject
from mcp_notebook.bridge.connect.remote import SILENCE_LIMIT, Remote
from mcp_notebook.errors import LaunchEnded, RemoteError
from mcp_notebook.settings.private_files import (
    lock_file,
    make_private_folder,
    read_private,
    write_private,
)
from mcp_notebook.text.terminal import print_note

LAUNCH_LIMIT = 7_200.0
"""Seconds that a build and a start may take, here or in another process."""
_LOOK_INTERVAL = 0.2
"""Seconds between two attempts to get another process's lock."""
_FAILURES = ("failed", "failure")
_LINES_KEPT = 15
"""Last lines of a build, for the error message."""
_QUIET = ("building", "pushing", "fetching")
"""Phases with thousands of lines; only their start is reported."""


@dataclass(frozen=True)
class Launch:
    """A Jupyter server that a BinderHub has started."""

    url: str
    """Its URL; ends with a slash."""
    token: str = field(repr=False)


async def find_launch(  # noqa: PLR0913 - what it uses
    http: httpx2.AsyncClient,
    repository: BinderRepository,
    credentials: Credentials,
    file: "LaunchFile",
    tell: Callable[[str], None] = print_note,
    *,
    insecure: bool = False,
) -> Remote:
    """Return the endpoint of a repository's server; start the server unless it runs.

    Args:
        http: The HTTP client.
        repository: The repository.
        credentials: For a BinderHub that requires a login.
        file: Stores the server's URL and token.
        tell: Called with a sentence about each step.
        insecure: Whether an unencrypted connection to another machine is allowed.

    Raises:
        RemoteError: The server cannot be started, or has no endpoint.
    """
    async with file.hold(tell):
        launch = file.read()
        if launch is not None:
            try:
                return await _connect(
                    http, launch, repository.binder, credentials, insecure=insecure
                )
            except LaunchEnded:
                tell("The previous server on Binder has ended.")
            except RemoteError as error:
                # It may be only the network: do not discard what was computed there.
                raise RemoteError(
                    f"{error} If that server has ended, remove {file.path} to start a new one."
                ) from None
        tell(f"Starting {repository.spec} on {repository.binder}. This may take minutes.")
        launch = await launch_repository(http, repository, credentials, tell)
        file.write(launch, f"lab/tree/{quote(repository.path)}" if repository.path else "lab")
        tell(
            "Notebooks that run there offer their tools. The page's address, which contains the "
            f"token, is in {file.link_file}."
        )
        return await _connect(http, launch, repository.binder, credentials, insecure=insecure)


async def _connect(
    http: httpx2.AsyncClient,
    launch: Launch,
    binder: str,
    credentials: Credentials,
    *,
    insecure: bool,
) -> Remote:
    """Return the endpoint of a server on Binder.

    The user's own token is for the host of the address that they gave: a BinderHub may name any
    other as that of its server.

    Raises:
        RemoteError: The server has no endpoint, cannot be reached, or has ended.
    """
    server = launch.url.rstrip("/")
    check_encryption(server, insecure=insecure)
    theirs = credentials
    if launch.token:
        theirs = Credentials(launch.token, "Binder", is_from_binder=True)
    elif credentials.token and httpx2.URL(server).origin != httpx2.URL(binder).origin:
        raise RemoteError(
            f"{binder} says that its server is {server}, on another host, and has no token for it. "
            f"The token from {credentials.place} was not sent there. If you trust that host, "
            f"connect to {server} instead."
        )
    return await find_endpoint(http, Address((f"{server}/mcp-notebook",), server), theirs)


class LaunchFile:
    """The file with a repository's server.

    Args:
        home: The folder of mcp-notebook's own files.
        repository: The repository.
    """

    def __init__(self, home: Path, repository: BinderRepository) -> None:
        self._place = f"{repository.spec} on {repository.binder}"
        key = hashlib.sha256(f"{repository.binder}/{repository.spec}".encode()).hexdigest()[:16]
        self.path = home / "binder" / f"{key}.json"
        """The URL and the token, for the next start."""
        self.link_file = home / "binder" / f"{key}.url"
        """The URL for the browser, which contains the token."""

    @asynccontextmanager
    async def hold(self, tell: Callable[[str], None]) -> AsyncIterator[None]:
        """Let one process at a time run the block; others wait.

        Args:
            tell: Called with a sentence if this process waits.

        Raises:
            RemoteError: Another process runs it for longer than a launch may take.
        """
        make_private_folder(self.path.parent)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(self.path.with_suffix(".lock"), flags, 0o600)
        try:
            if not lock_file(descriptor):
                tell(f"Another process is starting {self._place}. Waiting for it ...")
                await self._wait(descriptor)
            yield
        finally:
            os.close(descriptor)  # ends the lock

    async def _wait(self, descriptor: int) -> None:
        """Wait until another process has released the lock, and take it."""
        with anyio.move_on_after(LAUNCH_LIMIT):
            while not lock_file(descriptor):  # noqa: ASYNC110 - of another process
                await anyio.sleep(_LOOK_INTERVAL)
            return
        raise RemoteError(
            f"Another process of `mcp-notebook connect` has not started {self._place} within "
            f"{LAUNCH_LIMIT / 3_600:g} hours. End that process, and try again."
        )

    def read(self) -> Launch | None:
        """Return the last server, which may have ended; None without one."""
        try:
            content = json.loads(read_private(self.path))
            return Launch(str(content["url"]), str(content["token"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, launch: Launch, page: str) -> None:
        """Store a server.

        Args:
            launch: The server.
            page: Path of a page, below the server's URL.
        """
        write_private(self.path, json.dumps({"url": launch.url, "token": launch.token}))
        token = f"?token={launch.token}" if launch.token else ""
        write_private(self.link_file, f"{launch.url}{page}{token}\n")


async def launch_repository(  # noqa: PLR0913 - what it uses
    http: httpx2.AsyncClient,
    repository: BinderRepository,
    credentials: Credentials,
    tell: Callable[[str], None],
    *,
    launch_limit: float = LAUNCH_LIMIT,
    silence_limit: float = SILENCE_LIMIT,
) -> Launch:
    """Build and start a repository on a BinderHub; takes seconds to many minutes.

    Args:
        http: The HTTP client.
        repository: The repository and the BinderHub.
        credentials: For a BinderHub that requires a login.
        tell: Called with a line about each step.
        launch_limit: Seconds that the build and the start may take.
        silence_limit: Seconds for which the BinderHub may send nothing.

    Raises:
        RemoteError: It does not start.
    """
    remote = Remote(http, f"{repository.binder}/build/{repository.spec}", credentials)
    with anyio.move_on_after(launch_limit):
        return await _follow_build(remote, repository, tell, silence_limit)
    raise RemoteError(
        f"{repository.binder} has not started {repository.spec} within {launch_limit / 3_600:g} "
        "hours. Look at it in the browser, and try again."
    )


async def _follow_build(
    remote: Remote, repository: BinderRepository, tell: Callable[[str], None], silence_limit: float
) -> Launch:
    """Tell the progress of a build and start, and return the server once it is ready.

    Raises:
        RemoteError: It does not start.
    """
    messages: list[str] = []
    before = ""
    async with remote.listen({}, silence_limit) as reply:
        if reply.status != HTTPStatus.OK:
            raise explain_status(reply.status, remote.url, remote.credentials, reply.location)
        async for event in reply.read_events():
            if (launch := _read_launch(event)) is not None:
                return launch
            phase = str(event.get("phase", "unknown"))
            message = str(event.get("message") or "").strip()
            messages += filter(None, [message])
            if phase in _FAILURES:
                last = "\n".join(messages[-_LINES_KEPT:])
                raise RemoteError(
                    f"{repository.binder} could not start {repository.spec}. Check the repository "
                    f"and its ref. The end of the log: {last or 'empty.'}"
                )
            if phase != before or (message and phase not in _QUIET):
                tell(f"{phase}: {message}" if message and phase not in _QUIET else f"{phase} ...")
            before = phase
    raise RemoteError(
        f"{repository.binder} closed the connection before {repository.spec} was started. Try "
        "again."
    )


def _read_launch(event: JsonObject) -> Launch | None:
    """Return the server of an event that says that it is ready."""
    url, token = event.get("url"), event.get("token")
    if event.get("phase") != "ready" or not isinstance(url, str) or not url:
        return None
    return Launch(f"{url.rstrip('/')}/", token if isinstance(token, str) else "")
