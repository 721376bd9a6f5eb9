"""``/mcp-notebook/calls/stop``: the request of the stop buttons in a notebook's live panel.

Runs on the event loop of Jupyter Server. Accepts the page's cookie together with the XSRF token
that only pages of this server can read. Runs ``mcp-notebook call --stop`` in a process of its own;
the kernel answers it even while its main thread is busy.
"""

import re
import subprocess
import sys
from http import HTTPStatus
from typing import Any

import anyio.to_thread
from tornado.web import HTTPError

from mcp_notebook.jupyter.authorized_handler import AuthorizedHandler

_LIMIT = 60
"""Timeout in seconds; the command takes one, and waits for the kernel for up to ten."""
_ID = re.compile(r"[0-9a-f]{1,64}")
"""The id of a kernel's record."""
_NOT_A_CALL = (
    'Name the call to stop: {"kernel": "the id of its kernel\'s record", "call": its number}.'
)
_TOO_SLOW = (
    "It is not known yet whether the call was stopped. Run `mcp-notebook call --stop {}` in a "
    "terminal to find out."
)


class StopHandler(AuthorizedHandler):
    """The route for stop buttons."""

    async def post(self) -> None:
        """Stop a call, and answer with the outcome.

        Raises:
            HTTPError: 400 if the request names no call, 409 if the call cannot be stopped, 504 if
                stopping takes too long.
        """
        name = _read_name(self.get_json_body())
        try:
            done = await anyio.to_thread.run_sync(_stop, name)
        except subprocess.TimeoutExpired:
            raise HTTPError(HTTPStatus.GATEWAY_TIMEOUT, _TOO_SLOW.format(name)) from None
        if done.returncode:
            raise HTTPError(HTTPStatus.CONFLICT, done.stderr.strip())
        self.finish({"message": done.stdout.strip()})


def _read_name(body: Any) -> str:
    """Return the call's name for the command.

    Raises:
        HTTPError: The body names no call.
    """
    kernel, number = (body.get("kernel"), body.get("call")) if isinstance(body, dict) else ("", 0)
    is_id = isinstance(kernel, str) and _ID.fullmatch(kernel)
    if not is_id or not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise HTTPError(HTTPStatus.BAD_REQUEST, _NOT_A_CALL)
    return f"{kernel}:{number}"


def _stop(name: str) -> subprocess.CompletedProcess[str]:
    # -P: modules in the server's folder must not shadow those of the command.
    return subprocess.run(  # noqa: S603 - our own command, and an id and a number
        [sys.executable, "-P", "-m", "mcp_notebook", "call", "--stop", name],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_LIMIT,
        check=False,
    )
