"""Tools from a shell: ``mcp-notebook list`` and ``mcp-notebook call``.

Runs in a short-lived bridge process of its own that links kernels directly, without MCP. Answers go
to stdout, everything else to stderr. What argv means is `cli`'s business.
"""

import json
import mimetypes
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_notebook.bridge.headless.cell_progress import shown_on_stderr
from mcp_notebook.bridge.headless.notebook import run_notebook
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import Listener
from mcp_notebook.content import ContentBlock, Resource, ResourceLink, Result, Text
from mcp_notebook.discovery import Record, live_records
from mcp_notebook.errors import CallError, InvalidArguments, LinkError, NotebookError
from mcp_notebook.settings import Settings
from mcp_notebook.wire import messages, resource_uris

_NOBODY = (
    "No live notebook offers a tool. Open one in Jupyter and run `%load_ext mcp_notebook` and a "
    "`%%mcp_tool` cell in it, or name a notebook to run: `--notebook FILE.ipynb`."
)


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call as it is written in a shell."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Values as they are."""
    texts: Sequence[tuple[str, str]] = ()
    """Names and texts; what a text means depends on the tool's schema."""
    notebook: Path | None = None
    """Run or find this notebook; None: any live one."""
    save: Path | None = None
    """Folder for pictures, files, and the originals of what the answer shows only in part; None:
    they are only mentioned."""


async def list_tools(settings: Settings, notebook: Path | None) -> None:
    """Print the tools of a notebook, or of all live ones: a table, or tab-separated lines.

    The calls that run or wait there go to stderr.

    Raises:
        NotebookError: The notebook cannot be run.
    """
    async with _linked(settings, notebook) as (links, catalog, names):
        rows = [
            (
                entry.name,
                names[entry.kernel_id],
                _parameters(entry.tool),
                next(iter(entry.tool.description.strip().splitlines()), ""),
            )
            for entry in catalog.entries()
        ]
        # Shown before a kernel of our own is ended, which takes a moment.
        if not rows:
            _note(_NOBODY)
        elif sys.stdout.isatty():
            _print_table(rows)
        else:
            for row in rows:
                _print("\t".join(row))
        for kernel_id, call in links.calls_before:
            _note(f"{names[kernel_id]}: call of {call.tool}: {call.doing}")


async def call_tool(settings: Settings, call: ToolCall) -> bool:
    """Call a tool, print its answer, and return whether it succeeded.

    Raises:
        NotebookError: The notebook cannot be run, or there is none.
        CallError: There is no such tool, or the kernel is gone.
    """
    async with _linked(settings, call.notebook) as (links, catalog, _):
        if not catalog.entries():
            raise NotebookError(_NOBODY)
        entry = catalog.find(call.tool)
        arguments = dict(call.arguments) | _read(call.texts, entry.tool.input_schema)
        result = await links.call(entry, arguments, Listener(progress=_show_progress))
        _show(result, call)
        for block in result.content:
            if (
                isinstance(block, ResourceLink)
                and call.save is not None
                and resource_uris.find_kernel_id(block.uri)
            ):
                _note(await _save_original(links, block, call.save, call.tool))
    return not result.is_error


# -- kernels ---------------------------------------------------------------------------------------


@asynccontextmanager
async def _linked(
    settings: Settings, notebook: Path | None
) -> AsyncIterator[tuple[Links, Catalog, dict[str, str]]]:
    """Link the kernels that are asked for; yield their links, tools, and names by id."""
    async with AsyncExitStack() as stack:
        records = _live(settings, notebook)
        running = None
        if notebook is not None and not records:
            with shown_on_stderr() as progress:
                running = await stack.enter_async_context(
                    run_notebook(notebook, settings, progress=progress)
                )
        catalog = Catalog()
        links = await stack.enter_async_context(Links(catalog, on_change=lambda: None))
        if running is not None:
            records = [running.record]
            linked = links.linked_to(running.record, running.obituary)
            await stack.enter_async_context(linked)
        else:
            await _link(links, records)
        yield links, catalog, {record.id: record.name for record in records}


async def _link(links: Links, records: Sequence[Record]) -> None:
    # One after the other: two notebooks of one name are told apart by their order.
    for record in records:
        try:
            await links.connect(record)
        except LinkError as error:
            _note(str(error))


def _live(settings: Settings, notebook: Path | None) -> list[Record]:
    records = [record for record in live_records(settings.records_folder) if record.owner == "user"]
    if notebook is None:
        return records
    path = notebook.expanduser().resolve()
    return [record for record in records if record.notebook and path == _resolved(record.notebook)]


def _resolved(notebook: str) -> Path | None:
    # Some frontends give a path that is relative to a folder that we do not know.
    path = Path(notebook)
    return path.resolve() if path.is_absolute() else None


# -- arguments -------------------------------------------------------------------------------------


def _read(texts: Sequence[tuple[str, str]], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that these texts mean for a tool with this input schema."""
    arguments: dict[str, Any] = {}
    for name, text in texts:
        if name in arguments:
            raise InvalidArguments(f"The argument {name!r} is given twice. For a list: --json.")
        wanted = schema.get("properties", {}).get(name, {})
        arguments[name] = _value(text, set(_types(wanted, schema)))
    return arguments


def _value(text: str, allowed: set[str]) -> Any:
    """Return what a text means where values of these JSON types are allowed (none: any)."""
    if allowed == {"string"}:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    # Where text is allowed too, `5` may be either: a value that fits is taken before the text.
    return value if "string" not in allowed or _type(value) & allowed else text


def _type(value: Any) -> set[str]:
    """Return the JSON types that a value is of."""
    kinds: tuple[tuple[Any, set[str]], ...] = (
        (bool, {"boolean"}),  # before int, which it is too
        (int, {"integer", "number"}),
        (float, {"number"}),
        (str, {"string"}),
        (list, {"array"}),
        (dict, {"object"}),
        (type(None), {"null"}),
    )
    return next(names for kind, names in kinds if isinstance(value, kind))


def _types(
    schema: Any, root: Mapping[str, Any], seen: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield the JSON types that a schema allows; nothing if it does not say."""
    if not isinstance(schema, Mapping):
        return
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name and name not in seen:  # a type may contain itself
        seen |= {name}
        yield from _types(root.get("$defs", {}).get(name), root, seen)
    named = schema.get("type", [])
    yield from [named] if isinstance(named, str) else named
    if not named:
        for value in (*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())):
            yield from _type(value)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(keyword, ()):
            yield from _types(part, root, seen)


# -- what is shown ---------------------------------------------------------------------------------


def _parameters(tool: messages.ToolInfo) -> str:
    """Return the parameters as in a signature: required ones bare, others with their default."""
    required = tool.input_schema.get("required", ())
    return ", ".join(
        name if name in required else f"{name}={json.dumps(schema.get('default'))}"
        for name, schema in tool.input_schema.get("properties", {}).items()
    )


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - not needed when piped
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text as Plain  # noqa: PLC0415 - a description is no markup

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("Tool", "Notebook", "Parameters", "Description"):
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*map(Plain, row))
    Console().print(table)


async def _show_progress(progress: messages.Progress) -> None:
    done = "" if progress.progress is None else f"{progress.progress:g}"
    if progress.total is not None:
        done += f" of {progress.total:g}"
    elif progress.message:  # the number only says that it is newer
        done = ""
    _note(f"{done} {progress.message or ''}".strip())


def _show(result: Result, call: ToolCall) -> None:
    say = _note if result.is_error else _print
    for block in result.content:
        match block:
            case Text():
                say(block.text)
            case Resource(data=str() as text):
                say(text)
            case ResourceLink():
                say(f"{block.about}: {block.uri}")
            case _:
                _keep(block, call)
    if not result.content and result.structured is not None:
        say(json.dumps(result.structured, indent=2, ensure_ascii=False))


def _keep(block: ContentBlock, call: ToolCall) -> None:
    """Save what cannot be printed, or say that it is there."""
    assert not isinstance(block, Text | ResourceLink)
    assert isinstance(block.data, bytes)
    what = f"{type(block).__name__.lower()} ({block.mime_type}, {_size(len(block.data))})"
    if call.save is None:
        _note(f"{what} not saved: name a folder with --save DIR.")
        return
    _note(f"{what} saved as {_save(block.data, _extension(block.mime_type), call.save, call.tool)}")


async def _save_original(links: Links, link: ResourceLink, folder: Path, tool: str) -> str:
    """Save what a kernel of ours keeps behind a link; return what has become of it."""
    try:
        resource = await links.read_resource(link.uri)
    except CallError as error:
        return f"not saved: {error}"
    data = resource.data.encode() if isinstance(resource.data, str) else resource.data
    extension = Path(link.name).suffix or _extension(resource.mime_type)
    path = _save(data, extension, folder, tool)
    return f"{link.title or link.name} saved as {path} ({_size(len(data))})"


def _extension(mime_type: str) -> str:
    kind = mime_type.partition(";")[0]
    subtype = kind.partition("/")[2]
    # What the tables lack (audio/wav) is often its own extension.
    spare = f".{subtype}" if subtype.isalnum() else ".bin"
    return mimetypes.guess_extension(kind, strict=False) or spare


def _save(data: bytes, extension: str, folder: Path, tool: str) -> Path:
    """Write a file of a name that no file has yet, and return it."""
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
            f"Nothing can be saved in {folder}: {error.strerror}. Name another folder with --save."
        ) from None


def _size(count: int) -> str:
    return f"{count} bytes" if count < 1000 else f"{count / 1000:.0f} kB"  # noqa: PLR2004


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the command's output


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - the command's messages
