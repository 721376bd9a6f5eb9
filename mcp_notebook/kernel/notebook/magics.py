"""The magics: parse the line, call one thing, show.

Runs on the kernel's main thread, inside the user's cells. An error of the user's is a UsageError:
one sentence in place of a traceback.
"""

import difflib
import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import Audio as Player
from IPython.display import display

from mcp_notebook.content import Audio, Image, ResourceLink, Result, Text
from mcp_notebook.errors import DefinitionError, McpNotebookError
from mcp_notebook.kernel.calls.invoker import Invoker
from mcp_notebook.kernel.notebook import background_bridge as launcher
from mcp_notebook.kernel.notebook.cells import cell_function, run_functions
from mcp_notebook.kernel.notebook.magic_line import (
    Line,
    line_options,
    option_arguments,
    option_words,
    read_line,
)
from mcp_notebook.kernel.notebook.tool_card import card, table
from mcp_notebook.kernel.tools.attribute_tools import marked_methods, named_tools
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool, ToolRegistry, make_tool, mark_of
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.settings import Settings

VERBS = ("status", "list", "call", "remove", "clear-cache", "serve", "stop")
_ALONE = ("status", "list", "clear-cache", "serve", "stop")
"""Verbs that nothing follows."""
_NO_TOOLS = "No tools yet: put `%%mcp_tool` above a cell with a function."


_USERS_FRAME = 4
"""Frames from `McpMagics._expanded` to the code that has the magic."""


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
    @no_var_expand  # a signature stays as it is written; `read_line` expands the options
    @line_cell_magic
    def mcp_tool(self, line: str, cell: str | None = None) -> None:
        """Make functions tools that MCP clients can call in this kernel.

        ``%%mcp_tool`` runs the cell, and each function that the cell defines becomes a tool; names
        that start with ``_`` are helpers and stay private. ``%%mcp_tool name(city: str, n=3)``
        makes the cell itself a tool: its code runs in each call, its last expression is the result,
        its first string or comment the description. ``%mcp_tool f g`` is for functions that exist
        already, also ``module.f`` and ``model.predict``, and for objects with methods that
        ``@mcp_tool`` marks.
        """
        # Of an error in the user's cell, the traceback shows the cell and not these frames.
        __tracebackhide__ = True
        try:
            parsed = read_line(self.mcp_tool.parser, line, cell, self._expanded)
            options = line_options(parsed.options)
            if cell is None:
                tools = self._of_names(parsed, options)
            else:
                tools = self._of_cell(parsed, options)
        except DefinitionError as error:
            raise UsageError(str(error)) from None
        self._registry.add(*tools)
        display(card(tools, [tool.name for tool in self._registry.tools]), raw=True)

    @line_magic
    def mcp(self, line: str) -> None:
        """Look after the tools of this notebook.

        ::

            %mcp status             the tools, the calls that run or wait, the HTTP address
            %mcp list               the tools
            %mcp call TOOL k=v ...  call a tool as a client would (or: %mcp call TOOL {"k": "v"})
            %mcp remove TOOL ...    take tools away from clients; the functions stay
            %mcp clear-cache        forget results that are kept to be given again (`cache=`)
            %mcp serve              serve all open notebooks over HTTP, in the background
            %mcp stop               stop that
        """
        verb, _, rest = line.strip().partition(" ")
        verbs: dict[str, Callable[[str], None]] = {
            name: getattr(self, f"_{name.replace('-', '_')}") for name in VERBS
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

    def _expanded(self, words: str) -> str:
        """Put the notebook's variables into the options."""
        return str(self.shell.var_expand(words, depth=_USERS_FRAME))

    # -- %%mcp_tool --------------------------------------------------------------------------------

    def _of_cell(self, line: Line, options: ToolOptions) -> Sequence[DeclaredTool]:
        __tracebackhide__ = True
        _check_words(line)
        namespace, schemas = self.shell.user_ns, self._registry.schemas
        if line.signature is not None:
            name = line.signature.name
            function = cell_function(self.shell, line.signature, line.head, line.body)
            tool = make_tool(function, options, variable=name, schemas=schemas)
            namespace[name] = function
            return [tool]
        names = run_functions(self.shell, line.head, line.body)
        _check_names(names, options)
        tools = [
            make_tool(
                namespace[name],
                _with_mark(options, namespace[name]),
                variable=name,
                schemas=schemas,
            )
            for name in names
        ]
        # A decorator in the cell has made a tool already, under a name that the line may change.
        functions = [tool.function for tool in tools]
        made = {tool.name for tool in tools}
        self._registry.remove(
            *(
                tool.name
                for tool in self._registry.tools
                if tool.name not in made and any(tool.function is each for each in functions)
            )
        )
        return tools

    def _of_names(self, line: Line, options: ToolOptions) -> Sequence[DeclaredTool]:
        names = " ".join(line.names).replace(",", " ").split()
        if not names:
            raise DefinitionError(
                "Which functions? Write `%mcp_tool f g`, or put `%%mcp_tool` (two percent signs) "
                "on the first line of a cell with functions."
            )
        _check_names(names, options)
        given, prefix = _or_mark(options), line.options.prefix
        tools: dict[str, DeclaredTool] = {}
        for name in names:
            named = named_tools(
                name, self.shell.user_ns, given, prefix=prefix, schemas=self._registry.schemas
            )
            for tool in named:
                if tool.name in tools:
                    raise DefinitionError(
                        f"Two tools would be called `{tool.name}`: declare them one by one, one of "
                        "them with `--name` (of an object: `--prefix`)."
                    )
                tools[tool.name] = tool
        return list(tools.values())

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

    def _clear_cache(self, _rest: str) -> None:
        number = self._invoker.cache.clear()
        print(f"Forgot {_count(number, 'result')}.")  # noqa: T201

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


def complete_mcp_tool(namespace: Mapping[str, Any], line: str) -> list[str]:
    """Return what may follow on a ``%mcp_tool`` or ``%%mcp_tool`` line: options, then names."""
    words = line.split()
    complete, begun = (words, "") if line.endswith(" ") else (words[:-1], words[-1])
    takes_value = option_words()
    if takes_value.get(complete[-1]) or "." in begun:
        return []
    options = [word for word in takes_value if word not in complete]
    if line.startswith("%%"):
        return options
    callables = [
        name
        for name, value in namespace.items()
        if not name.startswith("_") and _may_be_tools(value)
    ]
    return [*callables, *options]


def _may_be_tools(value: Any) -> bool:
    function = callable(value) and not issubclass(type(value), type)
    return function or bool(marked_methods(type(value)))


def _check_words(line: Line) -> None:
    """Refuse what has no place on the line of ``%%mcp_tool``."""
    words = " ".join(line.names)
    if line.options.prefix is not None:
        raise DefinitionError(
            "`--prefix` is for `%mcp_tool obj`, an object with methods marked `@mcp_tool`: "
            "leave it out, or use `--name`."
        )
    if line.names and line.signature is not None:
        raise DefinitionError(
            f"Only options may stand beside the signature of `{line.signature.name}`, not "
            f"{words!r}: leave it out, or put a value of several words into quotes."
        )
    if line.names:
        name = line.names[0] if line.names[0].isidentifier() else "my_tool"
        raise DefinitionError(
            f"`%%mcp_tool` takes options or a signature, not {words!r}: every function in the "
            f"cell becomes a tool. To make the whole cell one tool write `%%mcp_tool {name}()`; "
            "for functions that exist use `%mcp_tool f g`."
        )


def _check_names(names: Sequence[str], options: ToolOptions) -> None:
    if len(names) != 1 and (options.name or options.title or options.description):
        raise DefinitionError(
            f"`--name`, `--title` and `--description` are for one tool; here are {len(names)}: "
            f"{', '.join(names)}. Declare them one by one."
        )


def _with_mark(options: ToolOptions, function: Any) -> ToolOptions:
    """Return what the line says, and what a decorator in the cell says where the line does not."""
    mark, unsaid = mark_of(function), ToolOptions()
    if mark is None:
        return options
    names = [item.name for item in fields(ToolOptions)]
    said = {name: getattr(options, name) for name in names}
    changed = {name: value for name, value in said.items() if value != getattr(unsaid, name)}
    return replace(mark, **changed)


def _or_mark(options: ToolOptions) -> ToolOptions | None:
    """Return what the line says; None if it says nothing, so that a decorator's options count."""
    return None if options == ToolOptions() else options


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
        elif isinstance(block, ResourceLink):
            print(f"{block.about}: {block.uri}")  # noqa: T201
        elif isinstance(block, Audio):
            player = Player(data=block.data)
            player.mimetype = block.mime_type  # it knows those of files only
            display(player)
        elif isinstance(block.data, str):
            print(f"{block.uri} ({block.mime_type}):\n{block.data}")  # noqa: T201
        else:
            about = f"{block.mime_type}, {len(block.data):,} bytes"
            print(f"{block.uri} ({about})")  # noqa: T201


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
