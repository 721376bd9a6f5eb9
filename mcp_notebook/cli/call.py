"""``mcp-notebook call TOOL``: makes one call.

Talks to kernels over their link, without MCP. Results go to stdout, everything else to stderr.
"""

import getpass
import json
import mimetypes
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mcp_notebook._version import __version__
from mcp_notebook.cli.help import Command, format_examples
from mcp_notebook.cli.options import (
    NO_TOOLS,
    Notebook,
    explain_extra_notebook,
)
from mcp_notebook.cli.runner import run_command
from mcp_notebook.content import ContentBlock, Resource, ResourceLink, Result, Text
from mcp_notebook.errors import (
    CallError,
    InvalidArguments,
    NotebookError,
    OtherKind,
    UnknownTool,
)
from mcp_notebook.schema_keywords import DEFINITIONS
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.redaction import has_secrets
from mcp_notebook.text.terminal import print_data, print_note
from mcp_notebook.text.typed_values import TOO_DEEP, read_typed_value
from mcp_notebook.text.wording import format_size, make_printable, suggest
from mcp_notebook.wire import resource_uris

if TYPE_CHECKING:
    from mcp_notebook.bridge.kernels.catalog import Catalog, CatalogEntry
    from mcp_notebook.bridge.kernels.links import Links
    from mcp_notebook.wire import messages

_YES = frozenset({"y", "yes"})
_PAIR = re.compile(r"([^={-][^=]*)=(.*)", re.DOTALL)

app = typer.Typer(add_completion=False)


@app.command(
    cls=Command,
    context_settings={"ignore_unknown_options": True},  # `_parse_arguments` says what to write
    epilog=format_examples(
        "mcp-notebook call monthly_rain year=2015 --notebook notebooks/weather.ipynb",
        'mcp-notebook call rainy_days --json \'{"kind": "snow", "count": 3}\' '
        "--notebook notebooks/weather.ipynb",
    ),
)
def call(  # noqa: PLR0913 - one for each option
    context: typer.Context,
    tool: Annotated[
        str,
        typer.Argument(metavar="TOOL", help="The tool's name, as `mcp-notebook list` shows it."),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE", help="The arguments.", show_default=False),
    ] = None,
    *,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="OBJECT", help="All arguments as a JSON object.")
    ] = None,
    notebook: Notebook = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Save pictures and files in this folder.")
    ] = None,
) -> None:
    """Call a tool and print its result."""
    if arguments and json_ is not None:
        context.fail("Give the arguments as NAME=VALUE or with --json, not both.")
    settings = Settings.from_environment()
    request = ToolCall(
        tool=tool,
        arguments={} if json_ is None else _parse_json_object(json_),
        texts=_parse_arguments(context, tool, arguments or ()),
        notebook=notebook,
        is_confirmed=yes,
        save=save,
    )
    if not run_command(call_tool, settings, request):
        raise typer.Exit(1)


def _parse_json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except RecursionError:
        raise typer.BadParameter(f"The arguments are {TOO_DEEP}", param_hint="'--json'") from None
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not JSON: {error}.", param_hint="'--json'") from None
    if not isinstance(value, dict):
        raise typer.BadParameter(
            f"{text!r} is not a JSON object. Write '{{\"name\": value}}'.", param_hint="'--json'"
        )
    return value


def _parse_arguments(
    context: typer.Context, tool: str, words: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the pairs of NAME=VALUE; other forms are an error that says how to write them."""
    pairs = [_PAIR.fullmatch(word) for word in words]
    wrong = next((word for word, pair in zip(words, pairs, strict=True) if not pair), None)
    if tool.startswith("-"):
        wrong = tool
    if wrong is None:
        return [(pair[1], pair[2]) for pair in pairs if pair]
    if wrong.endswith(".ipynb"):
        context.fail(explain_extra_notebook(wrong))
    if wrong.startswith("{"):
        context.fail(f"Write all arguments as one object: `--json {shlex.quote(wrong)}`.")
    said = f"No such option: {wrong}. " if wrong.startswith("-") else ""
    options = [option for each in context.command.params for option in each.opts]
    if said and (meant := suggest(wrong, options)):
        said += f"Did you mean {meant}? "
    return context.fail(f"{said}Write arguments as `NAME=VALUE`, such as `year=2015`: {wrong!r}.")


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call as typed in a shell."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Values by parameter."""
    texts: Sequence[tuple[str, str]] = ()
    """Pairs of parameter and text; the tool's input schema decides what a string means."""
    notebook: Path | None = None
    """The notebook, which runs for this call unless it is open; None for all open notebooks."""
    is_confirmed: bool = False
    """Whether to skip the question before a tool that asks for confirmation."""
    save: Path | None = None
    """Folder for pictures, files and originals of shortened results; None to only list them."""


async def call_tool(settings: Settings, call: ToolCall) -> bool:
    """Call a tool, print its answer, and return whether it succeeded.

    Raises:
        NotebookError: The notebook cannot be run, or no notebook offers a tool.
        CallError: The tool does not exist, its kernel is gone, or the user declines the call.
    """
    from mcp_notebook.bridge.kernels.running_call import Listener
    from mcp_notebook.bridge.shell_kernels import link_kernels
    from mcp_notebook.wire import messages

    client = messages.ClientInfo(name="mcp-notebook call", version=__version__)
    async with link_kernels(settings, call.notebook) as kernels:
        links = kernels.links
        for failure in kernels.failures:
            print_note(str(failure))
        entry = _find_tool(kernels.catalog, settings, call)
        schema = entry.tool.input_schema
        arguments = dict(call.arguments) | read_arguments(call.texts, schema)
        arguments = await ask_for_secrets(schema, arguments)
        if not call.is_confirmed:
            await ask_for_consent(settings, entry, arguments)
        listener = Listener(progress=_print_progress)
        result = await links.call(
            entry, arguments, listener, client=client, confirmed=entry.tool.revision
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


def _find_tool(catalog: "Catalog", settings: Settings, call: ToolCall) -> "CatalogEntry":
    """Return the tool to call.

    Raises:
        NotebookError: No notebook offers a tool.
        CallError: The tool does not exist.
    """
    try:
        return catalog.find(call.tool)
    except OtherKind as error:
        return catalog.find(call.tool, error.kind)
    except UnknownTool as error:
        from mcp_notebook.bridge.absent_notebooks import find_absent_notebooks

        absent = find_absent_notebooks(settings, also_back=True) if call.notebook is None else []
        if not catalog.entries():
            raise NotebookError("\n".join(map(str, (NO_TOOLS, *absent)))) from None
        if not absent:
            raise
        raise CallError("\n".join(map(str, (error, *absent)))) from None


# -- arguments -------------------------------------------------------------------------------------


def read_arguments(texts: Sequence[tuple[str, str]], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Turn strings into the arguments of a tool.

    Args:
        texts: Pairs of a parameter's name and the text of its value.
        schema: The tool's input schema.

    Raises:
        InvalidArguments: A parameter is named twice, or a value is nested too deeply.
    """
    arguments: dict[str, Any] = {}
    for name, text in texts:
        if name in arguments:
            raise InvalidArguments(
                f"The argument {name!r} was given twice. Use --json to pass a list."
            )
        parameter = schema.get("properties", {}).get(name, {})
        arguments[name] = _read_value(name, text, parameter, schema)
    return arguments


def _read_value(name: str, text: str, schema: Any, root: Mapping[str, Any]) -> Any:
    """Return the JSON value that a text stands for, or the text itself if the schema wants that."""
    parameter = schema if isinstance(schema, Mapping) else {}
    if parameter.get("type") == "string":
        return text
    try:
        value = read_typed_value(text)
    except ValueError as error:
        raise InvalidArguments(f"{name}: {error}") from None
    if value == text:
        return text
    from mcp_notebook.bridge.headless import jsonschema_import  # noqa: F401

    # isort: split
    from jsonschema.validators import validator_for

    definitions = {key: root[key] for key in DEFINITIONS if key in root}
    is_valid = validator_for(root)({**parameter, **definitions}).is_valid
    return value if is_valid(value) or not is_valid(text) else text


# -- questions -------------------------------------------------------------------------------------


async def ask_for_secrets(
    schema: Mapping[str, Any], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments with missing secrets, which the user types without echo.

    Arguments of a command are visible to other users in the list of processes, and stay in the
    shell's history. If stdin is not a terminal, nobody is asked and the tool reports what is
    missing.

    Args:
        schema: The tool's input schema.
        arguments: The arguments on the command line.
    """
    missing = [
        name
        for name in schema.get("required", ())
        if name not in arguments and has_secrets(schema.get("properties", {}).get(name), schema)
    ]
    if not missing or not sys.stdin.isatty():
        return dict(arguments)
    import anyio.to_thread

    texts = []
    for name in missing:
        prompt = f"{make_printable(name)} (hidden): "
        texts.append((name, await anyio.to_thread.run_sync(getpass.getpass, prompt)))
    return dict(arguments) | read_arguments(texts, schema)


async def ask_for_consent(
    settings: Settings, entry: "CatalogEntry", arguments: Mapping[str, Any]
) -> None:
    """Ask the user for confirmation if the tool requires it.

    Raises:
        ConsentDenied: The user declines, or stdin is not a terminal.
    """
    import anyio.to_thread

    from mcp_notebook.bridge.access.caller import Caller
    from mcp_notebook.bridge.server.consent.policy import ConsentPolicy, make_denial
    from mcp_notebook.bridge.server.consent.question_text import make_question, write_question

    if not ConsentPolicy.from_settings(settings).applies_to(entry.tool):
        return
    if not sys.stdin.isatty():
        raise make_denial(
            entry.name,
            "Nobody can be asked, because stdin is not a terminal. Add `--yes` to confirm.",
        )
    question = make_question(entry, arguments, caller=Caller(name="mcp-notebook"))
    print_note(write_question(question))
    print_note("Run it? y/N: ", end="")
    answer = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    if answer.strip().lower() not in _YES:
        raise make_denial(entry.name, "You declined.")


# -- output ----------------------------------------------------------------------------------------


async def _print_progress(progress: "messages.Progress") -> None:
    done = "" if progress.progress is None else f"{progress.progress:g}"
    if progress.total is not None:
        done += f" of {progress.total:g}"
    elif progress.message:  # without a total, the number only counts messages
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
    """Save a block that cannot be printed, or mention that it was not saved."""
    assert not isinstance(block, Text | ResourceLink)
    assert isinstance(block.data, bytes)
    kind = type(block).__name__.lower()
    description = f"{kind} ({block.mime_type}, {format_size(len(block.data))})"
    if call.save is None:
        print_note(f"{description} not saved; choose a folder with --save DIR")
        return
    path = _save(block.data, _guess_extension(block.mime_type), call.save, call.tool)
    print_note(f"{description} saved as {path}")


async def _save_original(links: "Links", link: ResourceLink, folder: Path, tool: str) -> str:
    """Save the resource behind a link, and return a sentence about the outcome."""
    try:
        resource = await links.read_resource(link.uri)
    except CallError as error:
        return f"not saved: {error}"
    data = resource.data.encode() if isinstance(resource.data, str) else resource.data
    extension = Path(link.name).suffix or _guess_extension(resource.mime_type)
    path = _save(data, extension, folder, tool)
    return f"{link.title or link.name} saved as {path} ({format_size(len(data))})"


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
