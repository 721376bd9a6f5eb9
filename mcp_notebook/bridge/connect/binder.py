"""Starts a repository on a BinderHub, through its build API, and tells how far that is.

Runs on the event loop of `mcp-notebook connect`. ``GET /build/PROVIDER/REPO/REF`` is a stream of
events; the one of the phase ``ready`` has the address of a Jupyter server and its token. What was
started is in `launches`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

import httpx2

from mcp_notebook.bridge.connect.addresses import BinderRepository
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.failures import explain_status
from mcp_notebook.bridge.connect.remote import Remote
from mcp_notebook.errors import RemoteError

_FAILURES = ("failed", "failure")
_LINES_KEPT = 15
"""Of what a build said last, for the message about its failure."""
_QUIET = ("building", "pushing", "fetching")
"""Phases that say thousands of lines: only their beginning is told."""


@dataclass(frozen=True)
class Launch:
    """A Jupyter server that a BinderHub has started."""

    url: str
    """Its address; ends with a slash."""
    token: str = field(repr=False)


async def launch_repository(
    http: httpx2.AsyncClient,
    repository: BinderRepository,
    credentials: Credentials,
    tell: Callable[[str], None],
) -> Launch:
    """Have a BinderHub build and start a repository; that takes seconds, or many minutes.

    Args:
        http: Makes the request.
        repository: What to start, and where.
        credentials: For a BinderHub that wants a login.
        tell: Gets a line about each step.

    Raises:
        RemoteError: It does not start.
    """
    remote = Remote(http, f"{repository.binder}/build/{repository.spec}", credentials)
    messages: list[str] = []
    before = ""
    async with remote.listen({}) as reply:
        if reply.status != HTTPStatus.OK:
            raise explain_status(reply.status, remote.url, credentials, reply.location)
        async for data in reply.read_data():
            phase, message, launch = _read_event(data)
            if launch is not None:
                return launch
            messages += filter(None, [message])
            if phase in _FAILURES:
                last = "\n".join(messages[-_LINES_KEPT:])
                raise RemoteError(
                    f"{repository.binder} could not start {repository.spec}. Check the repository "
                    f"and its version. It says: {last or 'nothing.'}"
                )
            if phase != before or (message and phase not in _QUIET):
                tell(f"{phase}: {message}" if message and phase not in _QUIET else f"{phase} ...")
            before = phase
    raise RemoteError(
        f"{repository.binder} ended its answer before {repository.spec} was started. Try again."
    )


def _read_event(data: str) -> tuple[str, str, Launch | None]:
    """Return the phase and message of an event, and the server if it is there."""
    try:
        event = json.loads(data)
    except ValueError:
        return "unknown", "", None
    if not isinstance(event, dict):
        return "unknown", "", None
    phase, url, token = event.get("phase"), event.get("url"), event.get("token")
    message = str(event.get("message") or "").strip()
    if phase == "ready" and isinstance(url, str) and url:
        launch = Launch(f"{url.rstrip('/')}/", token if isinstance(token, str) else "")
        return "ready", message, launch
    return str(phase), message, None
