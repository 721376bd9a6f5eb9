"""``mcp-notebook list`` and ``mcp-notebook call``: tools from a shell.

Runs in a short-lived process that links kernels directly, without MCP. Results go to stdout,
everything else to stderr.
"""

import json
import mimetypes
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_notebook._version import __version__
from mcp_notebook.bridge.absent_notebooks import find_absent_notebooks
from mcp_notebook.bridge.kernels.catalog import Catalog, CatalogEntry
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import Listener
from mcp_notebook.bridge.shell_kernels import LinkedKernels, link_kernels
from mcp_notebook.cli.shell_arguments import read_arguments
from mcp_notebook.cli.shell_consent import ask_on_terminal
from mcp_notebook.cli.shell_secrets import ask_for_secrets
from mcp_notebook.content import ContentBlock, Resource, ResourceLink, Result, Text
from mcp_notebook.errors import CallError, NotebookError, UnknownTool
from mcp_notebook.missing_tools import (
    MissingTool,
)
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.redaction import MASK, has_secrets
from mcp_notebook.text.terminal import print_data, print_note, print_output, print_table
from mcp_notebook.wire import messages, resource_uris

_NO_TOOLS = (
    "No open notebook offers a tool. Open one in Jupyter, run `%load_ext mcp_notebook` and a cell "
    "that begins with `%%mcp_tool`, or choose a notebook to run with `--notebook FILE.ipynb`."
)

_CLIENT = messages.ClientInfo(name="mcp-notebook call", version=__version__)
"""What the notebook's log says of who called."""


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call, as typed in a shell."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Values by parameter."""
    texts: Sequence[tuple[str, str]] = ()
    """Parameters and texts; the tool's input schema decides what a text means."""
    notebook: Path | None = None
    """The notebook, which is run unless it is open; None for all open notebooks."""
    is_confirmed: bool = False
    """Whether to run a tool that asks before each call without a question."""
    save: Path | None = None
    """Folder for pictures, files and the originals of shortened results; None to only list them."""


async def list_tools(settings: Settings, notebook: Path | None, *, as_json: bool = False) -> None:
    """Print the tools of a notebook, or of all open ones: as a table, or as tab-separated lines.

    On stderr follow the tools that clients do not see under their own name, each with the reason,
    and the calls that run or wait. As JSON, all of it is one object on stdout.

    Raises:
        NotebookError: The notebook cannot be run.
    """
    absent = find_absent_notebooks(settings) if notebook is None else []
    async with link_kernels(settings, notebook) as kernels:
        missing = (*_find_missing_tools(kernels), *absent)
        # Before the block ends and shuts down a kernel of our own, which takes a moment.
        if as_json:
            print_data(json.dumps(_describe_all(kernels, missing), indent=2, ensure_ascii=False))
            return
        _print_tools(kernels)
        if missing:
            print_note("Missing or under another name:")
        for tool in missing:
            print_note(f"  {tool}")
        for kernel_id, call in kernels.links.initial_calls:
            print_note(
                f"{kernels.names[kernel_id]}:{call.number}: call to {call.tool}: {call.doing}"
            )


async def call_tool(settings: Settings, call: ToolCall) -> bool:
    """Call a tool, print its answer, and return whether it succeeded.

    Raises:
        NotebookError: The notebook cannot be run, or no notebook offers a tool.
        CallError: No such tool exists, its kernel is gone, or the user does not agree to the call.
    """
    async with link_kernels(settings, call.notebook) as kernels:
        links = kernels.links
        for failure in kernels.failures:
            print_note(str(failure))
        entry = _find_tool(kernels.catalog, settings, call)
        schema = entry.tool.input_schema
        arguments = dict(call.arguments) | read_arguments(call.texts, schema)
        arguments = await ask_for_secrets(schema, arguments)
        if not call.is_confirmed:
            await ask_on_terminal(settings, entry, arguments)
        listener = Listener(progress=_print_progress)
        result = await links.call(
            entry, arguments, listener, client=_CLIENT, confirmed=entry.tool.revision
        )
        _print_result(result, call)
        for block in result.content:
            if (
                isinstance(block, ResourceLink)
                and call.save is not None
                and resource_uris.find_kernel_id(block.uri)
            ):
                print_note(await _save_original(links, block, call.save, call.tool))
    return not result.is_error


def _find_tool(catalog: Catalog, settings: Settings, call: ToolCall) -> CatalogEntry:
    """Return the tool to call.

    Raises:
        NotebookError: No notebook offers a tool.
        CallError: No such tool exists.
    """
    try:
        return catalog.find(call.tool)
    except UnknownTool as error:
        absent = find_absent_notebooks(settings, also_back=True) if call.notebook is None else []
        if not catalog.entries():
            raise NotebookError("\n".join(map(str, (_NO_TOOLS, *absent)))) from None
        if not absent:
            raise
        raise CallError("\n".join(map(str, (error, *absent)))) from None


# -- missing tools ---------------------------------------------------------------------------------


def _find_missing_tools(kernels: LinkedKernels) -> Iterator[MissingTool]:
    """Yield the linked kernels' tools that clients do not see, or see under another name."""
    yield from kernels.failures
    yield from kernels.catalog.list_missing_tools()
    if not kernels.catalog.entries():
        return
    from mcp_notebook.bridge.protocol.tool_form import find_rejection  # noqa: PLC0415 - loads MCP

    for entry in kernels.catalog.entries():
        rejection = find_rejection(entry)
        if rejection is not None:
            yield rejection


# -- output ----------------------------------------------------------------------------------------


def _print_tools(kernels: LinkedKernels) -> None:
    rows = [
        (
            entry.name,
            kernels.names[entry.kernel_id],
            _format_parameters(entry.tool),
            next(iter(entry.tool.description.strip().splitlines()), ""),
        )
        for entry in kernels.catalog.entries()
    ]
    if not rows:
        print_note(_NO_TOOLS)
    elif sys.stdout.isatty():
        print_table(("Tool", "Notebook", "Parameters", "Description"), rows)
    else:
        for row in rows:
            print_output("\t".join(row))


def _describe_all(kernels: LinkedKernels, missing: Sequence[MissingTool]) -> dict[str, Any]:
    """Return what `list_tools` prints as JSON; what MCP has a name for is called as there."""
    tools = [
        {
            "name": entry.name,
            "notebook": kernels.names[entry.kernel_id],
            "title": entry.tool.title,
            "description": entry.tool.description,
            "inputSchema": entry.tool.input_schema,
            "outputSchema": entry.tool.output_schema,
            "annotations": entry.tool.annotations,
        }
        for entry in kernels.catalog.entries()
    ]
    reasons = [
        {
            "notebook": tool.notebook,
            "tool": tool.tool,
            "listedAs": tool.listed_as,
            "reason": tool.reason,
            "nextStep": tool.next_step,
        }
        for tool in missing
    ]
    calls = [
        {
            "notebook": kernels.names[kernel_id],
            "number": call.number,
            "tool": call.tool,
            "client": call.client,
            "doing": call.doing,
        }
        for kernel_id, call in kernels.links.initial_calls
    ]
    return {"tools": tools, "missing": reasons, "calls": calls}


def _format_parameters(tool: messages.ToolInfo) -> str:
    """Return the parameters as in a signature, optional ones with their default."""
    root = tool.input_schema
    return ", ".join(
        name
        if name in root.get("required", ())
        else f"{name}={MASK if has_secrets(schema, root) else json.dumps(schema.get('default'))}"
        for name, schema in root.get("properties", {}).items()
    )


async def _print_progress(progress: messages.Progress) -> None:
    done = "" if progress.progress is None else f"{progress.progress:g}"
    if progress.total is not None:
        done += f" of {progress.total:g}"
    elif progress.message:  # without a total, the number only counts the messages
        done = ""
    print_note(f"{done} {progress.message or ''}".strip())


def _print_result(result: Result, call: ToolCall) -> None:
    write = print_note if result.is_error else print_data
    for block in result.content:
        match block:
            case Text():
                write(block.text)
            case Resource(data=str() as text):
                write(text)
            case ResourceLink():
                write(f"{block.about}: {block.uri}")
            case _:
                _save_block(block, call)
    if not result.content and result.structured is not None:
        write(json.dumps(result.structured, indent=2, ensure_ascii=False))


def _save_block(block: ContentBlock, call: ToolCall) -> None:
    """Save a block that cannot be printed, or mention it."""
    assert not isinstance(block, Text | ResourceLink)
    assert isinstance(block.data, bytes)
    kind = type(block).__name__.lower()
    description = f"{kind} ({block.mime_type}, {_format_size(len(block.data))})"
    if call.save is None:
        print_note(f"{description} not saved. Choose a folder with --save DIR.")
        return
    path = _save(block.data, _guess_extension(block.mime_type), call.save, call.tool)
    print_note(f"{description} saved as {path}")


async def _save_original(links: Links, link: ResourceLink, folder: Path, tool: str) -> str:
    """Save the resource behind a link, and return a sentence about the outcome."""
    try:
        resource = await links.read_resource(link.uri)
    except CallError as error:
        return f"not saved: {error}"
    data = resource.data.encode() if isinstance(resource.data, str) else resource.data
    extension = Path(link.name).suffix or _guess_extension(resource.mime_type)
    path = _save(data, extension, folder, tool)
    return f"{link.title or link.name} saved as {path} ({_format_size(len(data))})"


def _guess_extension(mime_type: str) -> str:
    kind = mime_type.partition(";")[0]
    subtype = kind.partition("/")[2]
    # For types that the tables lack (audio/wav), the subtype is often the extension.
    fallback = f".{subtype}" if subtype.isalnum() else ".bin"
    return mimetypes.guess_extension(kind, strict=False) or fallback


def _save(data: bytes, extension: str, folder: Path, tool: str) -> Path:
    """Write a file with an unused name, and return its path."""
    try:
        folder.expanduser().mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            path = folder.expanduser() / f"{tool}-{number}{extension}"
            try:
                with path.open("xb") as file:
                    file.write(data)
            except FileExistsError:
                number += 1
            else:
                return path
    except OSError as error:
        raise NotebookError(
            f"Cannot save to {folder}: {error.strerror}. Choose another folder with --save."
        ) from None


def _format_size(count: int) -> str:
    return f"{count} bytes" if count < 1000 else f"{count / 1000:.0f} kB"  # noqa: PLR2004
