"""The magics: parse the line, call one thing, show.

Runs on the kernel's main thread, inside the user's cells. An error of the user's is a UsageError:
one sentence in place of a traceback.
"""

import ast
import difflib
import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from mcp_notebook.content import Image, Result, Text
from mcp_notebook.errors import DefinitionError, McpNotebookError
from mcp_notebook.kernel import launcher
from mcp_notebook.kernel.card import card, table
from mcp_notebook.kernel.invoke import Invoker
from mcp_notebook.kernel.line_options import line_options, option_arguments
from mcp_notebook.kernel.options import ToolOptions
from mcp_notebook.kernel.tools import Tool, ToolRegistry, make_tool
from mcp_notebook.settings import Settings

VERBS = ("status", "list", "call", "remove", "serve", "stop")
_ALONE = ("status", "list", "serve", "stop")
"""Verbs that nothing follows."""
_NO_TOOLS = "No tools yet: put `%%mcp_tool` above a cell with a function."


@magics_class
class McpMagics(Magics):
    """``%%mcp_tool``, ``%mcp_tool`` and ``%mcp``.

    Args:
        shell: The notebook's IPython.
        registry: Where the tools are.
        invoker: Runs ``%mcp call``.
        settings: For the background bridge.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        registry: ToolRegistry,
        invoker: Invoker,
        settings: Settings,
    ) -> None:
        super().__init__(shell)
        self._registry = registry
        self._invoker = invoker
        self._settings = settings

    @magic_arguments()
    @argument("functions", nargs="*", help="Functions that exist (line magic only).")
    @option_arguments
    @line_cell_magic
    def mcp_tool(self, line: str, cell: str | None = None) -> None:
        """Make functions tools that MCP clients can call in this kernel.

        ``%%mcp_tool`` runs the cell, and each function that the cell defines becomes a tool; names
        that start with ``_`` are helpers and stay private. ``%mcp_tool f g`` does so for functions
        that exist already.
        """
        # Of an error in the user's cell, the traceback shows the cell and not these frames.
        __tracebackhide__ = True
        given = parse_argstring(self.mcp_tool, line)
        options = line_options(given)
        try:
            if cell is None:
                names = _existing(given.functions, self.shell.user_ns)
            else:
                names = self._run_cell_of_functions(line, cell, given.functions)
            tools = self._declare(names, options)
        except DefinitionError as error:
            raise UsageError(str(error)) from None
        display(card(tools), raw=True)

    @line_magic
    def mcp(self, line: str) -> None:
        """Look after the tools of this notebook.

        ::

            %mcp status             the tools, the calls that run or wait, the HTTP address
            %mcp list               the tools
            %mcp call TOOL k=v ...  call a tool as a client would (or: %mcp call TOOL {"k": "v"})
            %mcp remove TOOL ...    take tools away from clients; the functions stay
            %mcp serve              serve all open notebooks over HTTP, in the background
            %mcp stop               stop that
        """
        verb, _, rest = line.strip().partition(" ")
        verbs: dict[str, Callable[[str], None]] = {
            name: getattr(self, f"_{name}") for name in VERBS
        }
        if not verb:
            raise UsageError(f"What shall %mcp do? {', '.join(VERBS)}. Type `%mcp?` for help.")
        if verb not in verbs:
            close = difflib.get_close_matches(verb, VERBS, 1)
            hint = f"Did you mean `%mcp {close[0]}`?" if close else "Type `%mcp?` for help."
            raise UsageError(f"%mcp knows {', '.join(VERBS)}, not {verb!r}. {hint}")
        if verb in _ALONE and rest.strip():
            raise UsageError(f"Nothing follows `%mcp {verb}`: leave {rest.strip()!r} out.")
        try:
            verbs[verb](rest.strip())
        except McpNotebookError as error:
            raise UsageError(str(error)) from None

    # -- %%mcp_tool --------------------------------------------------------------------------------

    def _run_cell_of_functions(
        self, line: str, cell: str, functions: Sequence[str]
    ) -> tuple[str, ...]:
        """Run the cell in the notebook's namespace and return the functions that it defined."""
        if functions:
            raise DefinitionError(
                f"`%%mcp_tool` takes options only, not {' '.join(functions)!r}: every function in "
                "the cell becomes a tool. For functions that exist use `%mcp_tool f g`."
            )
        __tracebackhide__ = True
        shell = self.shell
        # The magic's own line stays as a comment, so that line numbers are those of the cell.
        source = shell.transform_cell(f"# %%mcp_tool {line}\n{cell}")
        filename = shell.compile.cache(source, _cell_number(shell), raw_code=source)
        module = shell.compile.ast_parse(source, filename=filename)
        names = [
            node.name
            for node in module.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and not node.name.startswith("_")
        ]
        if not names:
            raise DefinitionError(
                "The cell defines no function: `%%mcp_tool` makes tools of the functions in the "
                "cell (names that start with `_` are helpers). Write `def my_tool(): ...`."
            )
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DefinitionError(f"The cell defines `{twice[0]}` twice: give one another name.")
        for node in module.body[:-1]:
            _execute(shell, ast.Module([node], []), filename, "exec")
        last = module.body[-1]
        if isinstance(last, ast.Expr):  # shown, as the last line of any cell is
            _execute(shell, ast.Interactive([last]), filename, "single")
        else:
            _execute(shell, ast.Module([last], []), filename, "exec")
        return tuple(names)

    def _declare(self, names: Sequence[str], options: ToolOptions) -> list[Tool]:
        if len(names) != 1 and (options.name or options.title or options.description):
            raise DefinitionError(
                f"`--name`, `--title` and `--description` are for one tool; here are {len(names)}: "
                f"{', '.join(names)}. Declare them one by one."
            )
        namespace = self.shell.user_ns
        given = None if options == ToolOptions() else options
        schemas = self._registry.schemas
        tools = [
            make_tool(namespace[name], given, variable=name, schemas=schemas) for name in names
        ]
        self._registry.add(*tools)
        return tools

    # -- %mcp --------------------------------------------------------------------------------------

    def _status(self, _rest: str) -> None:
        tools, calls = self._registry.tools, self._invoker.calls
        names = ", ".join(tool.name for tool in tools)
        lines = [f"{_count(len(tools), 'tool')}: {names}" if tools else _NO_TOOLS]
        lines += [f"call of {call.tool}: {self._invoker.describe(call)}" for call in calls]
        bridge = launcher.find(self._settings)
        lines.append(
            f"served over HTTP at {bridge.url}"
            if bridge
            else "clients that start `mcp-notebook stdio` find this notebook; "
            "it is not served over HTTP (`%mcp serve` does that)"
        )
        print("\n".join(lines))  # noqa: T201 - the magic's output

    def _list(self, _rest: str) -> None:
        if self._registry.tools:
            display(table(self._registry.tools), raw=True)
        else:
            print(_NO_TOOLS)  # noqa: T201

    def _call(self, rest: str) -> None:
        name, _, given = rest.partition(" ")
        if not name:
            raise UsageError("Which tool? `%mcp call TOOL key=value ...`; `%mcp list` shows them.")
        self._known(name)
        _show(self._invoker.run_here(name, _arguments(given.strip())))

    def _remove(self, rest: str) -> None:
        names = rest.split()
        if not names:
            raise UsageError("Which tools? `%mcp remove TOOL ...`; `%mcp list` shows them.")
        for name in names:
            self._known(name)
        self._registry.remove(*names)
        left = _count(len(self._registry.tools), "tool")
        print(f"Removed {', '.join(names)}. {left} left.")  # noqa: T201

    def _serve(self, _rest: str) -> None:
        bridge = launcher.start(self._settings)
        token = (
            "the environment variable MCP_NOTEBOOK_TOKEN"
            if self._settings.token
            else f"the file {self._settings.token_path}"
        )
        bearer = (
            "$MCP_NOTEBOOK_TOKEN" if self._settings.token else f"$(cat {self._settings.token_path})"
        )
        print(  # noqa: T201
            f"All open notebooks are served at {bridge.url}\n"
            f"The token is in {token}. To connect Claude Code, for example:\n\n"
            f"  claude mcp add --transport http notebook {bridge.url} "
            f'--header "Authorization: Bearer {bearer}"\n\n'
            "`%mcp stop` ends it."
        )

    def _stop(self, _rest: str) -> None:
        stopped = launcher.stop(self._settings)
        print("Stopped." if stopped else "Nothing was being served over HTTP.")  # noqa: T201

    def _known(self, name: str) -> None:
        if self._registry.get(name) is None:
            known = [tool.name for tool in self._registry.tools]
            close = difflib.get_close_matches(name, known, 1)
            hint = (
                f"Did you mean {close[0]!r}?" if close else f"Tools: {', '.join(known) or 'none'}."
            )
            raise UsageError(f"This notebook has no tool {name!r}. {hint}")


def complete_mcp(registry: ToolRegistry, line: str) -> list[str]:
    """Return what may follow on a ``%mcp`` line: a verb, then tools, then a tool's arguments."""
    words = line.split()
    complete = words if line.endswith(" ") else words[:-1]
    if len(complete) <= 1:
        return list(VERBS)
    if complete[1] == "call" and len(complete) > 2:  # noqa: PLR2004 - %mcp call TOOL
        tool = registry.get(complete[2])
        given = {word.partition("=")[0] for word in complete[3:]}
        names = tool.info.input_schema.get("properties", {}) if tool else ()
        return [f"{name}=" for name in names if name not in given]
    if complete[1] in ("call", "remove"):
        return [tool.name for tool in registry.tools]
    return []


def _cell_number(shell: InteractiveShell) -> int:
    """Return the number in the prompt of the cell that runs, for its tracebacks.

    IPython counts a cell before it runs it or after, as versions go; all keep its input before.
    """
    return max(1, len(shell.history_manager.input_hist_raw) - 1)


def _execute(shell: InteractiveShell, tree: ast.AST, filename: str, mode: str) -> None:
    __tracebackhide__ = True
    code = shell.compile(tree, filename, mode)
    exec(code, shell.user_global_ns, shell.user_ns)  # noqa: S102 - the user's own cell


def _existing(names: Sequence[str], namespace: dict[str, Any]) -> tuple[str, ...]:
    if not names:
        raise DefinitionError(
            "Which functions? Write `%mcp_tool f g`, or put `%%mcp_tool` (two percent signs) on "
            "the first line of a cell with functions."
        )
    for name in names:
        if name not in namespace:
            close = difflib.get_close_matches(name, namespace, 1)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            raise DefinitionError(
                f"`{name}` is not defined in this notebook; run the cell that defines it.{hint}"
            )
    return tuple(names)


def _arguments(given: str) -> dict[str, Any]:
    """Read the arguments of ``%mcp call``: a JSON object, or ``key=value`` pairs."""
    if given.startswith("{"):
        try:
            arguments = json.loads(given)
        except ValueError as error:
            raise UsageError(f"The arguments are no JSON object: {error}.") from None
        return dict(arguments)
    arguments = {}
    for word in _split(given):
        name, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"{word!r} is no argument: write `name=value`, or a JSON object.")
        try:
            arguments[name] = json.loads(text)
        except ValueError:
            arguments[name] = text
    return arguments


def _split(text: str) -> list[str]:
    import shlex  # noqa: PLC0415

    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"The arguments cannot be read: {error}.") from None


def _show(result: Result) -> None:
    """Show a result as a client gets it."""
    if result.is_error:
        print("The client would get an error:")  # noqa: T201
    for block in result.content:
        if isinstance(block, Text):
            print(block.text)  # noqa: T201
        elif isinstance(block, Image):
            display({block.mime_type: b64encode(block.data).decode()}, raw=True)
        else:
            print(block)  # noqa: T201


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
