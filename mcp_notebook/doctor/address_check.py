"""Checks an address in a client's settings, with the token that the client would send.

Runs on the command's event loop. The token is sent only to the user's own bridge, or over TLS to
another machine.
"""

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from mcp_notebook.bridge.access.gate import is_loopback
from mcp_notebook.bridge.transports.port_owner import is_own_port
from mcp_notebook.clients.client import Machine
from mcp_notebook.discovery.records import read_bridge
from mcp_notebook.doctor.configured_servers import ConfiguredServer
from mcp_notebook.doctor.findings import Finding, approve, complain, note
from mcp_notebook.doctor.open_notebooks import OPEN_ONE, list_names
from mcp_notebook.doctor.probes import (
    ask_address,
    is_answering,
    is_bridge,
    is_listening,
    is_refused,
)
from mcp_notebook.errors import RemoteError
from mcp_notebook.settings.settings import DEFAULT_PORT, Settings
from mcp_notebook.text.wording import count

_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)\}|\$\{\{ *secrets\.(\w+) *\}\}")
_HELPER_LIMIT = 10.0
"""Seconds for the command that prints the header."""


@dataclass(frozen=True)
class _Headers:
    """The headers that a client would send, or the reason why it cannot."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    problem: Finding | None = None


async def check_address(
    server: ConfiguredServer, settings: Settings, machine: Machine
) -> list[Finding]:
    """Ask the address of an entry for its tools, and return what is right and wrong about it."""
    try:
        return await _try(server, server.url or "", settings, machine)
    except RemoteError as error:  # the environment has no usable HTTP client
        reason, _, step = str(error).partition(". ")
        return [complain(f"{reason}.", step)]


async def _try(
    server: ConfiguredServer, url: str, settings: Settings, machine: Machine
) -> list[Finding]:
    problem = await _find_wrong_listener(server, url, settings)
    if problem is not None:
        return [problem]
    headers = await asyncio.to_thread(_read_headers, server, settings, machine)
    if headers.problem is not None:
        return [headers.problem]
    if await is_refused(url, headers.values):
        return [
            complain(
                f"{url} does not accept the token that {server.client.title} sends.",
                _say_how_to_get_in(server, url, settings, machine),
            )
        ]
    answer = await ask_address(url, headers.values, server.start_limit)
    if answer.error is not None:
        return [
            complain(
                f"{url} answers, but does not list its tools: {answer.error}",
                "Check that this is an MCP address, or run "
                f"{server.format_repair()} for that of your own bridge.",
            )
        ]
    if not answer.tools:
        text = "It has no tools now, because no notebook is open there."
        return [approve(f"{url} answers.", ()), note(text, OPEN_ONE)]
    number = count(len(answer.tools), "tool")
    return [approve(f"{url} lists {number}: {list_names(answer.tools)}.", answer.tools)]


async def _find_wrong_listener(
    server: ConfiguredServer, url: str, settings: Settings
) -> Finding | None:
    """Check who listens at an address before sending a token there."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        host, port, parts = "", 0, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        return complain(f"{url!r} is not an address.", f"Run {server.format_repair()}.")
    if not is_loopback(host):
        return await _find_remote_problem(url, is_encrypted=parts.scheme == "https")
    # Not over HTTP, so that a program that listens but never answers counts as well.
    if not await is_listening(host, port):
        options = "" if port == DEFAULT_PORT else f" --port {port}"
        return complain(
            f"Nothing answers at {url}: no bridge is running there.",
            _explain_start(server, url, settings, options),
        )
    is_foreign = not await asyncio.to_thread(is_own_port, host, port)
    if is_foreign or not await is_bridge(f"{parts.scheme}://{parts.netloc}/healthz"):
        who = "a program of another user" if is_foreign else "another program of yours"
        return complain(
            f"Port {port} is in use by {who}, which would receive the token that "
            f"{server.client.title} sends.",
            f"Stop that program, or serve on another port. {_explain_start(server, url, settings)}",
        )
    return None


def _explain_start(
    server: ConfiguredServer, url: str, settings: Settings, options: str = ""
) -> str:
    bridge = read_bridge(settings.bridge_file)
    if bridge is not None and bridge.url != url:
        return f"Your bridge is now at {bridge.url}: run {server.format_repair()}."
    return f"Start one: `%mcp serve` in a notebook, or `mcp-notebook serve{options}` in a terminal."


async def _find_remote_problem(url: str, *, is_encrypted: bool) -> Finding | None:
    """Check an address of another machine before sending a token there."""
    if not is_encrypted:
        return complain(
            f"{url} is on another machine and not encrypted, so it was not contacted: anybody on "
            "the way could read the token.",
            "Use an address with https://, or `mcp-notebook connect`.",
        )
    if not await is_answering(url):
        return complain(
            f"Nothing answers at {url}.",
            "Check the address and your network, or ask the administrator of that server.",
        )
    return None


# -- the token -------------------------------------------------------------------------------------


def _read_headers(server: ConfiguredServer, settings: Settings, machine: Machine) -> _Headers:
    helper = server.entry.get("headersHelper")
    if isinstance(helper, str):
        return _run_helper(server, helper, settings)
    values = {}
    for name, template in server.headers.items():
        text = str(template)
        for match in _VARIABLE.finditer(text):
            variable = match[1] or match[2]
            value = _find_variable(server, variable, machine, is_secret=bool(match[2]))
            if not value:
                return _Headers(
                    problem=complain(
                        f"{server.client.title} reads the token from the environment variable "
                        f"{variable}, which is not set here.",
                        f"Set it to the token in {settings.token_place} where "
                        f"{server.client.title} "
                        "is started, and here before you run this command again.",
                    )
                )
            text = text.replace(match[0], value)
        values[name] = text
    return _Headers(values)


def _find_variable(
    server: ConfiguredServer, variable: str, machine: Machine, *, is_secret: bool
) -> str | None:
    """Return the value of a variable. Continue also reads secrets from a file of its own."""
    if machine.env.get(variable) or not is_secret:
        return machine.env.get(variable)
    try:
        lines = server.file.with_name(".env").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    pairs = [line.partition("=") for line in lines]
    return next((value.strip(" \"'") for key, _, value in pairs if key.strip() == variable), None)


def _run_helper(server: ConfiguredServer, helper: str, settings: Settings) -> _Headers:
    """Run the command that prints headers, as Claude Code does when it connects."""
    try:
        done = subprocess.run(  # noqa: S602 - what the client runs is what is tried
            helper,
            shell=True,
            capture_output=True,
            timeout=_HELPER_LIMIT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        values = json.loads(done.stdout)
        if isinstance(values, dict) and values:
            return _Headers({str(name): str(value) for name, value in values.items()})
        reason = "it printed no header"
    except subprocess.TimeoutExpired:
        reason = f"it took longer than {_HELPER_LIMIT:g} s"
    except ValueError:
        reason = done.stderr.decode(errors="replace").strip() or "it printed no header"
    step = f"Run {server.format_repair(keeps_address=True)}."
    if not os.path.exists(settings.token_path) and not settings.token:  # noqa: PTH110 - both fit
        step = "`%mcp serve` in a notebook creates the file."
    return _Headers(
        problem=complain(f"The command that reads the token failed: {reason}. ({helper})", step)
    )


def _say_how_to_get_in(
    server: ConfiguredServer, url: str, settings: Settings, machine: Machine
) -> str:
    """Return where the right token is, and where the client needs it."""
    if not is_loopback(urlsplit(url).hostname or ""):
        return "Ask the administrator of that server for a token."
    texts = map(str, server.headers.values())
    names = [match[1] or match[2] for text in texts for match in _VARIABLE.finditer(text)]
    place = f"The token of your own bridge is in {settings.token_place}."
    if any(name in machine.env for name in names):
        return f"{place} Set {names[0]} to it where {server.client.title} is started."
    return f"{place} Run {server.format_repair(keeps_address=True)}."
