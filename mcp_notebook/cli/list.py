"""``mcp-notebook list``: the tools of notebooks, the missing tools, and the running calls.

Talks to kernels over their link, without MCP. The table or JSON goes to stdout, everything else to
stderr.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mcp_notebook.cli.help import Command, format_examples
from mcp_notebook.cli.options import (
    NO_TOOLS,
    TAKES_WORDS,
    Notebook,
    explain_extra_notebook,
)
from mcp_notebook.cli.runner import run_command
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.redaction import MASK, has_secrets
from mcp_notebook.text.terminal import print_data, print_note, print_table

if TYPE_CHECKING:
    from mcp_notebook.bridge.shell_kernels import LinkedKernels
    from mcp_notebook.text.missing_tools import MissingTool
    from mcp_notebook.wire import messages

app = typer.Typer(add_completion=False)
_NONE_IN_FOLDER = (
    "No notebook in this folder declares a tool. Put `%load_ext mcp_notebook` into a cell of one, "
    "and `%%mcp_tool` as the first line of a cell with functions."
)


@app.command(
    "list",
    cls=Command,
    context_settings=TAKES_WORDS,
    epilog=format_examples(
        "mcp-notebook list",
        "mcp-notebook list --notebook notebooks/weather.ipynb",
        "mcp-notebook list --notebook notebooks",
        "mcp-notebook list --skills .claude/skills",
    ),
)
def list_(
    context: typer.Context,
    *,
    notebook: Notebook = None,
    skills: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the skills to this folder as NAME/SKILL.md, and list their files: in a "
            "project, `.claude/skills` for Claude Code, Cursor and VS Code, `.agents/skills` for "
            "Codex, Cursor and VS Code.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="With --skills, overwrite files that differ from the notebook's."
        ),
    ] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, for programs.")
    ] = False,
) -> None:
    """List the tools of all open notebooks, of one notebook, or of a folder.

    Of a folder, the tools are those that its notebooks offered when they last ran.

    Below the table are the tools that clients do not see, or see under another name, with the
    reason.
    """
    if context.args:
        context.fail(explain_extra_notebook(context.args[0]))
    settings = Settings.from_environment()
    if force and skills is None:
        context.fail("--force needs --skills DIR.")
    if skills is not None:
        if json_:
            context.fail("--json is of the list of tools: leave it out beside --skills.")
        if notebook is not None and notebook.is_dir():
            context.fail("--skills needs an open notebook or a notebook's file, not a folder.")
        from mcp_notebook.cli.skills import export_skills

        run_command(export_skills, settings, skills, notebook, force=force)
        return
    run_command(list_tools, settings, notebook, as_json=json_)


async def list_tools(settings: Settings, notebook: Path | None, *, as_json: bool = False) -> None:
    """Print the tools of a notebook, of all in a folder, or of all open ones.

    For a folder, that is what its notebooks last offered: no kernel is started. The tools that
    clients do not see under their own name, with the reason, and the running and waiting calls
    follow on stderr. As JSON, everything is one object on stdout.

    Raises:
        NotebookError: The notebook cannot be run.
    """
    from mcp_notebook.bridge.absent_notebooks import find_absent_notebooks
    from mcp_notebook.bridge.shell_kernels import link_kernels, read_folder

    absent = find_absent_notebooks(settings) if notebook is None else []
    folder = _find_folder(notebook)
    opened = link_kernels(settings, notebook) if folder is None else read_folder(settings, folder)
    async with opened as kernels:
        missing = (*_find_missing_tools(kernels), *absent)
        # Print before the block ends: shutting down a kernel of our own takes a moment.
        if as_json:
            print_data(json.dumps(_describe_all(kernels, missing), indent=2, ensure_ascii=False))
            return
        _print_tools(kernels, NO_TOOLS if folder is None else _NONE_IN_FOLDER)
        if missing:
            print_note("Missing or under another name:")
        for tool in missing:
            print_note(f"  {tool}")
        for kernel_id, call in kernels.links.initial_calls:
            print_note(
                f"{kernels.names[kernel_id]}:{call.number}: call to {call.tool}: {call.doing}"
            )


def _find_folder(notebook: Path | None) -> Path | None:
    """Return the folder that is meant; None for a notebook, or none."""
    if notebook is None:
        return None
    folder = notebook.expanduser()
    return folder if os.path.isdir(folder) else None  # noqa: PTH112 - a name may be too long


def _find_missing_tools(kernels: "LinkedKernels") -> Iterator["MissingTool"]:
    """Yield the linked kernels' tools that clients do not see, or see under another name."""
    yield from kernels.failures
    yield from kernels.catalog.list_missing_tools()
    if not kernels.catalog.entries():
        return
    from mcp_notebook.bridge.server.forms.tool_form import find_rejection

    for entry in kernels.catalog.entries():
        rejection = find_rejection(entry)
        if rejection is not None:
            yield rejection


def _print_tools(kernels: "LinkedKernels", no_tools: str) -> None:
    rows = [
        (
            entry.name,
            kernels.names[entry.kernel_id],
            _format_parameters(entry.tool),
            _summarize(entry.tool),
        )
        for entry in kernels.catalog.all_entries
    ]
    if rows:
        print_table(("Tool", "Notebook", "Parameters", "Description"), rows)
    else:
        print_note(no_tools)


def _describe_all(kernels: "LinkedKernels", missing: Sequence["MissingTool"]) -> dict[str, Any]:
    """Return the JSON that `list_tools` prints, with MCP's names where they exist."""
    tools = [
        {
            "name": entry.name,
            "kind": entry.tool.kind,
            "notebook": kernels.names[entry.kernel_id],
            "title": entry.tool.title,
            "description": entry.tool.description,
            "inputSchema": entry.tool.input_schema,
            "outputSchema": entry.tool.output_schema,
            "annotations": entry.tool.annotations,
        }
        for entry in kernels.catalog.all_entries
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


def _summarize(tool: "messages.ToolInfo") -> str:
    line = next(iter(tool.description.strip().splitlines()), "")
    kind = {"notebook": "has to run first"}.get(tool.kind, tool.kind)
    if tool.text is not None:
        kind = "skill"
    return line if kind == "tool" else f"[{kind}] {line}".strip()


def _format_parameters(tool: "messages.ToolInfo") -> str:
    """Return the parameters as in a signature, with defaults."""
    root = tool.input_schema
    return ", ".join(
        name
        if name in root.get("required", ())
        else f"{name}={MASK if has_secrets(schema, root) else json.dumps(schema.get('default'))}"
        for name, schema in root.get("properties", {}).items()
    )
