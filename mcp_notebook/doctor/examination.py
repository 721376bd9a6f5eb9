"""Checks one client, or this machine and all clients that have an entry for mcp-notebook.

Runs in the process of the command, and prints findings as they come.
"""

import json
import shlex
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mcp_notebook._version import __version__
from mcp_notebook.clients.client import Client, Machine
from mcp_notebook.clients.installation import explain_absence, is_installed
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.doctor.address_check import check_address
from mcp_notebook.doctor.command_check import check_command
from mcp_notebook.doctor.configured_servers import ConfiguredServer, read_servers
from mcp_notebook.doctor.findings import Finding, State, complain, note
from mcp_notebook.doctor.machine import examine_machine
from mcp_notebook.errors import ClientError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_check, print_data, print_output
from mcp_notebook.text.wording import count

_MARKS: dict[State, str] = {"right": "✓", "noted": "-", "wrong": "✗"}


@dataclass(frozen=True, kw_only=True)
class Examination:
    """The target to check, as typed in a shell."""

    client: Client | None = None
    """None for the machine and all clients with an entry for mcp-notebook."""
    name: str | None = None
    """The server's name in the client; None for all entries for mcp-notebook."""
    file: Path | None = None
    """The client's settings file; None for its usual place."""
    as_json: bool = False
    """Whether to print one JSON object instead of lines."""


@dataclass(frozen=True, kw_only=True)
class _Section:
    """The findings about one thing."""

    title: str
    findings: Sequence[Finding]


async def examine(settings: Settings, examination: Examination) -> bool:
    """Check what connects clients and notebooks, print the findings, and return if all is well.

    Args:
        settings: The settings of this command.
        examination: What to check.
    """
    sections = []
    async for section in _list_sections(settings, examination):
        sections.append(section)
        if not examination.as_json:
            _print_section(section)
    wrong = sum(finding.state == "wrong" for one in sections for finding in one.findings)
    if examination.as_json:
        print_data(json.dumps(_describe(sections, wrong), indent=2, ensure_ascii=False))
    else:
        print_output("\nNo problems." if not wrong else f"\n{count(wrong, 'problem')}.")
    return not wrong


async def _list_sections(settings: Settings, examination: Examination) -> AsyncIterator[_Section]:
    machine = Machine.current()
    if examination.client is not None:
        async for section in _examine_client(settings, machine, examination, examination.client):
            yield section
        return
    yield _Section(title="This machine", findings=await examine_machine(settings))
    is_known = False
    for client in CLIENTS.values():
        if client.find_file(machine).exists():
            async for section in _examine_known(settings, machine, examination, client):
                is_known = True
                yield section
    if not is_known:
        step = "`mcp-notebook install` lists the clients on this machine, and connects them."
        nobody = note("No client has an entry for mcp-notebook.", step)
        yield _Section(title="Clients", findings=[nobody])


async def _examine_client(
    settings: Settings, machine: Machine, examination: Examination, client: Client
) -> AsyncIterator[_Section]:
    """Yield the findings about a client that the user named, which should be connected."""
    is_known = False
    async for section in _examine_known(settings, machine, examination, client):
        is_known = True
        yield section
    if is_known:
        return
    if examination.file is None and not is_installed(client, machine):
        step = "Install it and start it once, or name its settings file with --file."
        finding = complain(explain_absence(client, machine), step)
    else:
        file = examination.file or client.find_file(machine)
        what = f"the server {examination.name!r}" if examination.name else "mcp-notebook"
        words = ["mcp-notebook", "install", client.name]
        words += ["--name", examination.name] if examination.name else []
        words += ["--file", str(file)] if examination.file else []
        finding = complain(
            f"{client.title} is not connected: {file} has no entry for {what}.",
            f"Run `{shlex.join(words)}`.",
        )
    yield _Section(title=client.title, findings=[finding])


async def _examine_known(
    settings: Settings, machine: Machine, examination: Examination, client: Client
) -> AsyncIterator[_Section]:
    """Yield the findings about each entry for mcp-notebook in a client's settings."""
    try:
        servers = read_servers(client, machine, examination.file, examination.name)
    except ClientError as error:
        yield _Section(title=client.title, findings=[complain(str(error))])
        return
    for server in servers:
        title = f"{client.title}: the server {server.name!r} in {server.file}"
        if client.belongs_to_folder and examination.client is None:
            # Another user may have written it: its command would run, or get the user's token.
            step = f"Read it first, then check it with `mcp-notebook doctor {client.name}`."
            findings = [note("It belongs to this folder, so it was not checked.", step)]
        else:
            findings = await _examine_server(server, settings, machine)
        yield _Section(title=title, findings=findings)


async def _examine_server(
    server: ConfiguredServer, settings: Settings, machine: Machine
) -> list[Finding]:
    if server.is_off:
        step = "Enable it in the client, or in its settings."
        return [complain(f"It is disabled in {server.client.title}.", step)]
    if server.url is not None:
        return await check_address(server, settings, machine)
    if server.words:
        return await check_command(server, settings, machine)
    text = "The entry has neither a command nor an address."
    return [complain(text, f"Run {server.format_repair()}.")]


def _print_section(section: _Section) -> None:
    print_output(section.title)
    for finding in section.findings:
        print_check(_MARKS[finding.state], finding.text, is_wrong=finding.state == "wrong")
        if finding.next_step is not None:
            print_output(f"    {finding.next_step}")


def _describe(sections: Sequence[_Section], wrong: int) -> dict[str, object]:
    return {
        "version": __version__,
        "ok": not wrong,
        "problems": wrong,
        "sections": [asdict(section) for section in sections],
    }
