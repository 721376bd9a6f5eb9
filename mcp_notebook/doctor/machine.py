"""Checks what all clients share: the installation, its folder, open notebooks, bridge and log.

Runs on the command's event loop. Changes nothing.
"""

import json
import os
import shlex
import stat
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_config_path

from mcp_notebook._version import __version__
from mcp_notebook.discovery.records import read_bridge
from mcp_notebook.doctor.findings import Finding, approve, complain, note
from mcp_notebook.doctor.open_notebooks import ask_notebooks, describe_notebooks
from mcp_notebook.doctor.probes import is_bridge
from mcp_notebook.settings.limits import SETS, Limits
from mcp_notebook.settings.private_files import is_own
from mcp_notebook.settings.settings import Settings, list_sources, list_unknown_variables
from mcp_notebook.text.wording import suggest

_EXTENSION = "mcp_notebook"
_ENABLE = "`jupyter server extension enable mcp_notebook`"


async def examine_machine(settings: Settings) -> list[Finding]:
    """Return the findings about what all clients share."""
    findings = [
        _describe_installation(),
        *_check_variables(),
        _describe_limits(settings),
        _check_home(settings),
    ]
    if findings[-1].state != "wrong":
        findings += describe_notebooks(await ask_notebooks(settings))
    return [
        *findings,
        await _check_bridge(settings),
        _check_audit(settings),
        _check_extension(),
    ]


def _describe_installation() -> Finding:
    python = ".".join(map(str, sys.version_info[:3]))
    return approve(f"mcp-notebook {__version__}, Python {python}: {sys.executable}.")


def _check_variables() -> list[Finding]:
    findings = []
    variables = [field.metadata["env"] for field in fields(Settings)]
    for name in list_unknown_variables():
        close = suggest(name, variables)
        hint = f"Did you mean {close}?" if close else "Remove it."
        findings.append(note(f"The variable {name} is not a setting and has no effect.", hint))
    return findings


def _describe_limits(settings: Settings) -> Finding:
    if settings.limits in SETS:
        default = "" if "limits" in list_sources() else ", by default"
        return approve(f"The limits are {settings.limits!r}{default}.")
    others = [
        f"{limit.name} = {value:,}"
        for limit in fields(Limits)
        for value in [getattr(settings, limit.name)]
        if value != limit.default
    ]
    return approve(f"The limits in {settings.limits}: {', '.join(others) or 'all as in normal'}.")


def _check_home(settings: Settings) -> Finding:
    """Check that the folder of records and secrets is usable, and only by the user."""
    home = settings.home
    chmod = f"chmod 700 {shlex.quote(str(home))}"
    choose = "or set MCP_NOTEBOOK_HOME to another folder, here and for the notebooks."
    try:
        status = home.stat()
    except FileNotFoundError:
        parent = next(folder for folder in home.absolute().parents if folder.exists())
        if os.access(parent, os.W_OK | os.X_OK):
            return approve(f"Its folder, {home}, will be created when it is first needed.")
        problem = f"cannot be created: {parent} is not writable", f"Make {parent} writable, "
        f"{choose}"
    except OSError as error:
        problem = f"cannot be used: {error.strerror}", f"Fix that, {choose}"
    else:
        if not stat.S_ISDIR(status.st_mode):
            problem = "is not a folder", f"Move it away, {choose}"
        elif not is_own(status):
            problem = "belongs to another user", f"Remove it, {choose}"
        elif sys.platform != "win32" and status.st_mode & 0o022:
            problem = "is writable for other users", f"Run `{chmod}`."
        elif not os.access(home, os.R_OK | os.W_OK | os.X_OK):
            problem = "is not writable", f"Run `{chmod}`."
        else:
            return approve(f"Its folder, {home}, is writable, and only by you.")
    return complain(f"Its folder, {home}, {problem[0]}.", problem[1])


async def _check_bridge(settings: Settings) -> Finding:
    """Check the background bridge."""
    bridge = read_bridge(settings.bridge_file)
    if bridge is None:
        return note("No background bridge is running. Only HTTP needs one: `%mcp serve` starts it.")
    if bridge.version != __version__:
        return complain(
            f"The background bridge at {bridge.url} is mcp-notebook {bridge.version}, but this is "
            f"{__version__}.",
            "`%mcp serve` in a notebook of this environment replaces an older bridge.",
        )
    origin = bridge.url.removesuffix("/mcp")
    if bridge.url.startswith("http:") and not await is_bridge(f"{origin}/healthz"):
        return complain(
            f"The background bridge (process {bridge.pid}) does not answer at {bridge.url}.",
            "Restart it in a notebook: `%mcp serve --stop`, then `%mcp serve`.",
        )
    return approve(f"The background bridge serves at {bridge.url}.")


def _check_audit(settings: Settings) -> Finding:
    """Check that the audit log can be written."""
    path = settings.audit_path
    if not settings.audit:
        return note("The audit log is off (MCP_NOTEBOOK_AUDIT).")
    place = next((p for p in (path, *path.absolute().parents) if os.path.lexists(p)), path)
    try:
        status = place.lstat()
    except OSError as error:
        return complain(f"The audit log, {path}, cannot be used: {error.strerror}.")
    is_regular = stat.S_ISREG(status.st_mode) if place == path else place.is_dir()
    if is_regular and os.access(place, os.W_OK) and (place != path or is_own(status)):
        return approve(f"The audit log, {path}, is writable.")
    reason = "it is not a regular file" if not is_regular else f"{place} is not writable for you"
    return complain(
        f"The audit log, {path}, cannot be written: {reason}. Calls are not recorded.",
        "Fix that, or set MCP_NOTEBOOK_AUDIT_FILE to another file.",
    )


def _check_extension() -> Finding:
    """Check that the Jupyter Server of this environment serves tools."""
    if find_spec("jupyter_server") is None:
        return note("This environment has no Jupyter Server, so none serves tools at /mcp.")
    enabled = None
    for folder in reversed(jupyter_config_path()):  # later ones win
        root = Path(folder)
        files = [
            *sorted((root / "jupyter_server_config.d").glob("*.json")),
            root / "jupyter_server_config.json",
        ]
        for file in files:
            value = _read_extensions(file).get(_EXTENSION)
            enabled = enabled if value is None else bool(value)
    if enabled:
        return approve("The Jupyter Server of this environment serves tools at /mcp.")
    text = "The Jupyter Server of this environment does not serve tools at /mcp: its extension is "
    if enabled is None:
        return complain(f"{text}not configured.", f"Run {_ENABLE}, or reinstall mcp-notebook.")
    return note(f"{text}disabled.", f"{_ENABLE} enables it.")


def _read_extensions(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        extensions = document["ServerApp"]["jpserver_extensions"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return extensions if isinstance(extensions, dict) else {}
