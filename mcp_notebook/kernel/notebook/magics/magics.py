"""The magics: ``%%mcp_tool`` and others that declare, ``%%mcp_view``, and ``%mcp``.

Runs on the kernel's main thread, inside the user's cells. A user's mistake is a UsageError: IPython
shows one sentence instead of a traceback.
"""

import re
from argparse import ArgumentParser
from functools import partial

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import (
    Magics,
    cell_magic,
    line_cell_magic,
    line_magic,
    magics_class,
    no_var_expand,
)
from msgspec import structs

from mcp_notebook.errors import DefinitionError, McpNotebookError
from mcp_notebook.kernel.notebook.cell_tools import CellTools
from mcp_notebook.kernel.notebook.declarations import (
    NothingOffered,
    declare_cell,
    declare_names,
    declare_resource,
    find_replaced_names,
    note_reassigned,
    tell_refusals,
)
from mcp_notebook.kernel.notebook.magic_line import (
    build_parser,
    build_skill_parser,
    read_line,
    read_resource_line,
    read_view_line,
    split_words,
)
from mcp_notebook.kernel.notebook.magics.mcp_verbs import VERBS, Notebook, describe_verbs, run_verb
from mcp_notebook.kernel.notebook.magics.option_help import describe_line_options, extend_help
from mcp_notebook.kernel.tools.skills import describe_skill, make_skill_tool, read_skill
from mcp_notebook.text.terminal import print_output
from mcp_notebook.text.wording import make_printable, suggest
from mcp_notebook.wire import messages

_MISPLACED = (
    "`%%mcp_{}` must be the first line of its cell: move it above everything else, also above "
    "comments; `%load_ext` and imports can be in a cell before it. The lines below it have not run."
)
_UNKNOWN = re.compile(r"(?:Line|Cell) magic (?:function )?`(%+)([^`\s]+)` not found")
"""IPython's message on an unknown magic."""
_VARIABLE = re.compile(r"[${}]")
"""The characters that IPython expands."""
_SKILL_PARSER = build_skill_parser()
_DECORATORS = ("mcp_tool", "mcp_tools", "mcp_prompt", "mcp_resource", "mcp_skill")
_CELL_MAGICS = ("mcp", "mcp_tool", "mcp_prompt", "mcp_resource", "mcp_skill", "mcp_view")
_FRAMES_TO_USER = 4
"""Frames from `McpMagics._expand` to the code with the magic."""


@magics_class
class McpMagics(Magics):
    """``%%mcp_tool`` and others that declare, ``%%mcp_view``, and ``%mcp``.

    Args:
        shell: The notebook's IPython.
        cell_tools: Adds the tools that a cell declares.
        notebook: The objects that the verbs of ``%mcp`` use.
    """

    def __init__(self, shell: InteractiveShell, cell_tools: CellTools, notebook: Notebook) -> None:
        super().__init__(shell)
        self._registry = cell_tools.registry
        self._cell_tools = cell_tools
        self._notebook = notebook

    @no_var_expand  # a signature stays as it is written; `read_line` expands the options
    @line_cell_magic
    def mcp_tool(self, line: str, cell: str | None = None) -> None:
        """Make functions tools that MCP clients can call in this kernel.

        ::

            %%mcp_tool [options]
            %%mcp_tool name(city: str, n: int = 3) [options]
            %mcp_tool f g [options]

        ``%%mcp_tool`` runs the cell and makes each function that it defines a tool. Functions whose
        names start with ``_`` are helpers and stay private.

        ``%%mcp_tool name(...)`` makes the cell itself a tool: its code runs on every call instead
        of now. The value of its last expression is the result; its first string or comment is the
        description.

        ``%mcp_tool f g`` makes existing functions tools. It also takes ``module.f``,
        ``model.predict``, and objects whose methods are marked with ``@mcp_tool``.
        """
        # The traceback of an error in the user's cell shows the cell and not these frames.
        __tracebackhide__ = True
        self._declare("tool", self.mcp_tool.parser, line, cell)

    mcp_tool.parser = build_parser()
    extend_help(mcp_tool, describe_line_options)

    @no_var_expand
    @line_cell_magic
    def mcp_prompt(self, line: str, cell: str | None = None) -> None:
        """Make text a prompt: what a user of an MCP client can start with, in place of typing it.

        ::

            %%mcp_prompt name(year: int, region: str = "EU") [options]
            %%mcp_prompt [options]
            %mcp_prompt f g [options]

        ``%%mcp_prompt name(...)`` makes the Markdown below it a prompt. ``{year}`` stands for an
        argument, ``{{`` and ``}}`` for braces. The first line is the description.

        ``%%mcp_prompt`` runs the cell and makes each function that it defines a prompt. It returns
        text, pictures, tables and `Message` objects, and sees the notebook's variables as they are
        when a client gets the prompt. Functions whose names start with ``_`` stay private.

        ``%mcp_prompt f g`` makes existing functions prompts.
        """
        __tracebackhide__ = True
        self._declare("prompt", build_parser("prompt"), line, cell)

    extend_help(mcp_prompt, partial(describe_line_options, "prompt"))

    @no_var_expand
    @cell_magic
    def mcp_resource(self, line: str, cell: str) -> None:
        """Make data a resource that MCP clients can read by its URI.

        ::

            %%mcp_resource data://orders [options]
            %%mcp_resource frame://{name} [options]

        The cell is run each time that a client reads the resource; the value of its last expression
        is the content: text, bytes, a table, data, a plot, or the path of a file. ``{name}`` is a
        variable, which the cell sees as text; ``{+path}`` may contain slashes, and
        ``{?first,second}`` at the end are optional.

        If the cell ends with a function, the cell is run now, and the function for each client. Its
        parameters are the variables of the URI.
        """
        __tracebackhide__ = True
        try:
            parser = build_parser("resource")
            uri, parsed = read_resource_line(parser, line, cell, self._expand)
            tool = declare_resource(self.shell, uri, parsed, self._registry.schemas)
            self._registry.remove(*find_replaced_names([tool], self._registry.tools))
            self._cell_tools.add(tool)
        except DefinitionError as error:
            raise UsageError(make_printable(str(error))) from None

    extend_help(mcp_resource, partial(describe_line_options, "resource"))

    def _declare(
        self, kind: messages.Kind, parser: ArgumentParser, line: str, cell: str | None
    ) -> None:
        __tracebackhide__ = True
        schemas = self._registry.schemas
        try:
            expand = partial(self._expand, frames=_FRAMES_TO_USER + 1)
            parsed = read_line(parser, line, cell, expand, kind)
            if cell is None:
                declared = declare_names(self.shell, parsed, schemas)
            else:
                declared = declare_cell(self.shell, parsed, schemas)
                if parsed.signature is not None and kind == "tool":
                    cells = self._notebook.file.read_cells()
                    first = f"%%mcp_{kind} {line}"
                    tools = [note_reassigned(tool, cells, first) for tool in declared.tools]
                    declared = structs.replace(declared, tools=tools)
                replaced = find_replaced_names(declared.tools, self._registry.tools)
                self._registry.remove(*replaced)
            self._cell_tools.add(*declared.tools)
            self._cell_tools.note_refused(declared.refusals)
            tell_refusals(self.shell, make_printable("\n".join(declared.refusals.values())))
        except DefinitionError as error:
            text = make_printable(str(error))
            if isinstance(error, NothingOffered):
                tell_refusals(self.shell, text)
            raise UsageError(text) from None

    @line_magic("%mcp_tool")  # IPython reads `%%mcp_tool` below the first line as this
    def refuse_misplaced_mcp_tool(self, _line: str) -> None:
        """Say where `%%mcp_tool` belongs."""
        raise UsageError(_MISPLACED.format("tool"))

    @line_magic("%mcp_prompt")
    def refuse_misplaced_mcp_prompt(self, _line: str) -> None:
        """Say where `%%mcp_prompt` belongs."""
        raise UsageError(_MISPLACED.format("prompt"))

    @no_var_expand
    @cell_magic
    def mcp_view(self, line: str, cell: str) -> None:
        """Define a page that clients with MCP Apps show beside the results of tools.

        ::

            %%mcp_view NAME [--allow HOST ...]
            <h1>...</h1>
            <script>notebook.onresult(result => ...)</script>

        A tool shows it with ``%%mcp_tool --ui NAME``, or ``@mcp_tool(ui="NAME")``. Scripts of the
        page find ``notebook``: ``notebook.onresult(result => ...)`` is called with each result,
        whose ``data`` is what the tool returned, as JSON, and whose ``text`` is the text; ``await
        notebook.call("tool", {x: 1})`` calls a tool of this notebook; ``notebook.send("text")``
        tells the model. CSS has the client's colors as variables, and ``data-theme``.

        The page loads nothing from the web, except from the hosts after ``--allow``.
        """
        try:
            name, hosts = read_view_line(line)
            view = self._registry.views.define(name, cell, hosts)
        except DefinitionError as error:
            raise UsageError(make_printable(str(error))) from None
        tools = [f"`{tool.name}`" for tool in self._registry.tools if tool.options.ui == name]
        users = f"shown with {', '.join(tools)}" if tools else f"`%%mcp_tool --ui {name}` shows it"
        loads = f"; it may load from {', '.join(view.hosts)}" if view.hosts else ""
        print_output(f"View `{name}`: {users}{loads}.")

    @no_var_expand
    @cell_magic
    def mcp_skill(self, line: str, cell: str) -> None:
        """Tell assistants in Markdown how to work with this notebook.

        ::

            %%mcp_skill weekly-report [--description TEXT] [--tag WORD]
            Use this for the report of a week. First call `rain_by_day`, then ...

        Assistants choose a skill by its description, and read the rest when they need it. Without
        ``--description``, it is the first paragraph. The cell may instead begin with YAML front
        matter between lines of ``---``, with ``name``, ``description`` and more.

        ``%%mcp_skill weekly-report/references/limits.md`` adds a further file, to which the skill
        can refer as ``references/limits.md``.
        """
        try:
            parsed = read_line(_SKILL_PARSER, line, None, self._expand)
            file = read_skill(" ".join(parsed.names), cell, parsed.options.description)
            skill = make_skill_tool(file, split_words(parsed.options.tags))
            self._cell_tools.add(skill)
        except DefinitionError as error:
            raise UsageError(make_printable(str(error))) from None
        if file.front_matter is None:
            print_output(f"File `{file.path}` of the skill `{file.skill}`.")
        else:
            print_output(describe_skill(skill))

    @no_var_expand  # text by a client, a file or a tool must not be expanded; see `run_verb`
    @line_magic
    def mcp(self, line: str) -> None:
        """Manage the tools of this notebook.

        ``%mcp help`` and ``%mcp VERB -h`` show the same help. ``%mcp status`` never shows a running
        call on the main thread: like any cell, it starts only after that call has ended.
        """
        try:
            run_verb(self._notebook, line, self._expand)
        except McpNotebookError as error:
            raise UsageError(make_printable(str(error))) from None

    extend_help(mcp, describe_verbs)

    def _expand(self, words: str, frames: int = _FRAMES_TO_USER) -> str:
        """Expand the notebook's variables in the options."""
        if not _VARIABLE.search(words):  # IPython would take minutes for many brackets
            return words
        return str(self.shell.var_expand(words, depth=frames))


def suggest_correction(error: BaseException | None) -> str | None:
    """Return a sentence that corrects a misspelt magic of ours, or a missing import; else None.

    Args:
        error: The cell's error.
    """
    if isinstance(error, NameError) and error.name in _DECORATORS:
        return f"Run `from mcp_notebook import {error.name}` first."
    match = _UNKNOWN.match(str(error)) if isinstance(error, UsageError) else None
    meant = _find_meant(match[1], match[2].lower().replace("-", "_")) if match else None
    return f"Did you mean `{meant}`?" if meant else None


def _find_meant(percent: str, name: str) -> str | None:
    """Return the magic that was probably meant by ``%mcp_status`` or ``%%mcp_tools``."""
    if percent == "%%":
        meant = suggest(name, _CELL_MAGICS)
        return meant and f"%%{'mcp_tool' if meant == 'mcp' else meant}"
    verb = name.removeprefix("mcp").strip("_")
    if name.startswith("mcp") and verb in VERBS:
        return f"%mcp {verb}"
    meant = suggest(name, ("mcp", "mcp_tool", "mcp_prompt"))
    return f"%{meant}" if meant else None
