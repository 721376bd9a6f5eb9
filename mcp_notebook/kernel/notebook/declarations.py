"""Builds the tools and prompts of cells, of ``%mcp_tool`` lines, and of decorated functions.

Runs on the kernel's main thread, inside the user's cell. The magic adds the tools to the registry.
Of several functions, those that can be tools become tools, and the author reads why the others
cannot. A line that is wrong itself declares nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from msgspec import Struct, structs

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.notebook.cells import (
    ends_with_function,
    make_cell_function,
    make_prompt_function,
    run_cell,
)
from mcp_notebook.kernel.notebook.magic_line import Line, Signature, build_options
from mcp_notebook.kernel.notebook.reassigned_names import describe_reassigned
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.schema_cache import SchemaCache
from mcp_notebook.kernel.tools.attribute_tools import find_decorated, make_tools_by_name
from mcp_notebook.kernel.tools.declared_tool import (
    DeclaredTool,
    make_tool,
    merge_mark,
    read_cell,
    read_own_mark,
    read_skill_mark,
)
from mcp_notebook.kernel.tools.options import ResourceOptions, ToolOptions
from mcp_notebook.kernel.tools.resource_templates import make_resource_name, read_variables
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.text.missing_tools import REFUSED, write_refusal
from mcp_notebook.text.terminal import print_note
from mcp_notebook.text.wording import make_printable
from mcp_notebook.wire import messages


class NothingOffered(DefinitionError):
    """None of several functions, or the only one, can be a tool."""


class Declared(Struct, frozen=True):
    """What became of the functions of a line or a cell; at least one is a tool."""

    tools: Sequence[DeclaredTool]
    refusals: Mapping[str, str]
    """Why the others are no tools, as sentences, by their words."""


def declare_cell(shell: InteractiveShell, line: Line, schemas: SchemaCache | None) -> Declared:
    """Build the tools of the cell below ``%%mcp_tool``, or the prompts below ``%%mcp_prompt``.

    With a signature on the line, the cell becomes one function, which is stored in the notebook:
    it is the function's body, or the prompt's Markdown. Otherwise the cell runs, and each public
    function that it defines becomes a tool or a prompt.

    Args:
        shell: The notebook's IPython.
        line: The magic's line, and the cell.
        schemas: Schemas of earlier starts.

    Raises:
        DefinitionError: The line or the cell is invalid, or none of its functions can be a tool.
    """
    __tracebackhide__ = True  # an error in the user's cell shows the cell, not these frames
    _check_words(line)
    options = build_options(line.options, line.kind)
    signature = line.signature
    if signature is not None:

        def make_whole(name: str) -> Sequence[DeclaredTool]:
            __tracebackhide__ = True
            make_function = make_prompt_function if line.kind == "prompt" else make_cell_function
            function = make_function(shell, signature, line.head, line.body)
            tool = make_tool(function, options, variable=name, schemas=schemas)
            shell.user_ns[name] = function
            return [tool]

        return _declare_each([signature.name], line.kind, make_whole)
    names = run_cell(shell, line.head, line.body, line.kind)
    _check_names(names, options)

    def make(name: str) -> Sequence[DeclaredTool]:
        function = shell.user_ns[name]
        merged = merge_mark(options, function)
        return [make_tool(function, merged, variable=name, schemas=schemas)]

    return _declare_each(names, line.kind, make)


def note_reassigned(tool: DeclaredTool, cells: Sequence[str], head: str) -> DeclaredTool:
    """Return a tool that is a cell's body, with notes on names that later cells set again.

    Args:
        tool: The tool.
        cells: The code cells of the notebook's file, which may be older.
        head: The first line of its cell.
    """
    heads = [cell.partition("\n")[0].split() for cell in cells]
    if head.split() not in heads:
        return tool
    place, numbered = heads.index(head.split()) + 1, dict(enumerate(cells, start=1))
    texts = describe_reassigned(numbered, place, tool.schema.input_schema["properties"])
    return structs.replace(tool, notes=(*tool.notes, *texts))


def declare_resource(
    shell: InteractiveShell, uri: str, line: Line, schemas: SchemaCache | None
) -> DeclaredTool:
    """Build the resource of the cell below ``%%mcp_resource``.

    If the cell ends with a function, the cell runs and that function is the resource. Otherwise the
    cell is the body of a function, whose parameters are the URI's variables.

    Args:
        shell: The notebook's IPython.
        uri: The URI or template.
        line: The magic's line, and the cell.
        schemas: Schemas of earlier starts.

    Raises:
        DefinitionError: The URI, the line or the cell is invalid.
    """
    __tracebackhide__ = True
    variables = read_variables(uri)
    options = build_options(line.options, "resource")
    assert isinstance(options, ResourceOptions)
    options = replace(options, uri=uri)
    if ends_with_function(shell, line.head, line.body):
        name = run_cell(shell, line.head, line.body, "resource")[-1]
        function = shell.user_ns[name]
        return make_tool(function, options, variable=name, schemas=schemas)
    parameters = [
        f"{variable}: str | None = None" if is_optional else f"{variable}: str"
        for variable, is_optional in variables.items()
    ]
    name = options.name or make_resource_name(uri)
    signature = Signature(name="resource", rest=f"({', '.join(parameters)})", column=0)
    function = make_cell_function(shell, signature, line.head, line.body, "resource")
    return make_tool(function, replace(options, name=name), schemas=schemas)


def declare_names(shell: InteractiveShell, line: Line, schemas: SchemaCache | None) -> Declared:
    """Build the tools that ``%mcp_tool f model.predict obj`` names.

    Args:
        shell: The notebook's IPython.
        line: The magic's line.
        schemas: Schemas of earlier starts.

    Raises:
        DefinitionError: The line is invalid, or nothing that it names can be a tool.
    """
    options = build_options(line.options, line.kind)
    words = list(dict.fromkeys(" ".join(line.names).replace(",", " ").split()))
    if not words:
        raise DefinitionError(
            f"Which functions? Write `%mcp_{line.kind} f g`, or put `%%mcp_{line.kind}` (two "
            "percent signs) on the first line of a cell that defines functions."
        )
    _check_names(words, options)
    taken: set[str] = set()

    def make(word: str) -> Sequence[DeclaredTool]:
        tools = make_tools_by_name(
            word, shell.user_ns, options, prefix=line.prefix, schemas=schemas
        )
        for tool in tools:
            if tool.name in taken:
                raise DefinitionError(
                    f"Two tools would be called `{tool.name}`: declare them one at a time, one of "
                    "them with `--name` (an object's with `--prefix`)."
                )
        taken.update(tool.name for tool in tools)
        return tools

    return _declare_each(words, line.kind, make)


def _declare_each(
    words: Sequence[str], kind: messages.Kind, make: Callable[[str], Sequence[DeclaredTool]]
) -> Declared:
    """Make the tools of each word; one that cannot be a tool does not hinder the others.

    Raises:
        NothingOffered: None is a tool. One reason for all is told once.
    """
    __tracebackhide__ = True
    tools: list[DeclaredTool] = []
    reasons: dict[str, str] = {}
    for word in words:
        try:
            tools += make(word)
        except Exception as error:
            if len(words) == 1 and not isinstance(error, DefinitionError):
                raise
            reasons[word] = _describe_refusal(error).removeprefix(f"`{word}`: ")
    refusals = {word: write_refusal(word, kind, reason) for word, reason in reasons.items()}
    if not tools and len(words) > 1 and len(set(reasons.values())) == 1:
        raise NothingOffered(f"{', '.join(f'`{word}`' for word in words)}: {reasons[words[0]]}")
    if not tools:
        raise NothingOffered("\n".join(refusals.values()))
    return Declared(tools, refusals)


def tell_refusals(shell: InteractiveShell, text: str) -> None:
    """Tell who runs the notebook without a frontend what cannot be a tool; frontends do not look.

    Args:
        shell: The notebook's IPython.
        text: Sentences, one on each line.
    """
    if text and shell.payload_manager is not None:
        shell.payload_manager.write_payload({"source": REFUSED, "text": text}, single=False)


def _describe_refusal(error: Exception) -> str:
    return str(error) if isinstance(error, DefinitionError) else f"{describe_error(error)}."


class DecoratedObject(Struct, frozen=True):
    """A decorated object, as the notebook had it when the extension was unloaded."""

    value: Any
    tools: Sequence[DeclaredTool]
    """The tools made from it, without removed ones."""


def list_decorated(registry: ToolRegistry, namespace: Mapping[str, Any]) -> list[DecoratedObject]:
    """Return the notebook's decorated functions and classes, with their tools and skills.

    Args:
        registry: The notebook's tools.
        namespace: The notebook's variables.
    """
    values = [namespace[name] for name in find_decorated(namespace)]
    values += [value for value in tuple(namespace.values()) if read_skill_mark(value) is not None]
    return [
        DecoratedObject(value, [tool for tool in registry.tools if _is_made_from(tool, value)])
        for value in values
    ]


def declare_decorated(
    registry: ToolRegistry, shell: InteractiveShell, earlier: Iterable[DecoratedObject] = ()
) -> None:
    """Add the functions, classes and skills that were decorated before the extension was loaded.

    One with two names is added once. One that cannot be a tool is reported on stderr and skipped.

    Args:
        registry: The notebook's tools.
        shell: The notebook's IPython.
        earlier: From `list_decorated` at the last unload; their tools are restored.
    """
    namespace = shell.user_ns
    tools_before = {id(decorated.value): decorated.tools for decorated in earlier}
    for name in find_decorated(namespace):
        try:
            tools = tools_before.get(id(namespace[name]))
            if tools is None:
                cell = read_cell(namespace[name])
                new = make_tools_by_name(name, namespace, schemas=registry.schemas)
                tools = [structs.replace(tool, cell=cell) for tool in new]
            registry.add(*tools)
        except Exception as error:  # noqa: BLE001 - one odd function must not hide the others
            kind = (read_own_mark(namespace[name]) or ToolOptions).kind
            sentence = make_printable(write_refusal(name, kind, _describe_refusal(error)))
            print_note(sentence)
            tell_refusals(shell, sentence)
    for value in tuple(namespace.values()):
        skill = read_skill_mark(value)
        if skill is not None:
            tools = tools_before.get(id(value), [skill])
            registry.add(*(tool for tool in tools if tool.kind_word == "skill"))


def _is_made_from(tool: DeclaredTool, value: Any) -> bool:
    return tool.function is value or (tool.origin is not None and tool.origin.value is value)


def find_replaced_names(
    tools: Sequence[DeclaredTool], existing: Iterable[DeclaredTool]
) -> list[str]:
    """Return the names of existing tools that a decorator made from the same functions.

    Args:
        tools: The tools of the cell, which its line may have renamed.
        existing: The notebook's tools.
    """
    names = {tool.name for tool in tools}
    return [
        other.name
        for other in existing
        if other.name not in names and any(tool.function is other.function for tool in tools)
    ]


def _check_words(line: Line) -> None:
    """Refuse words that are invalid on the line of ``%%mcp_tool`` or ``%%mcp_prompt``."""
    words, kind = " ".join(line.names), line.kind
    if line.prefix is not None:
        raise DefinitionError(
            "`--prefix` is for `%mcp_tool obj`, where `obj` has methods marked with `@mcp_tool`: "
            "remove it, or use `--name`."
        )
    if line.names and line.signature is not None:
        raise DefinitionError(
            f"Only options can stand beside the signature of `{line.signature.name}`, not "
            f"{words!r}: remove it, or quote values that contain spaces."
        )
    if line.names:
        name = line.names[0] if line.names[0].isidentifier() else f"my_{kind}"
        raise DefinitionError(
            f"`%%mcp_{kind}` takes options or a signature, not {words!r}: every function in the "
            f"cell becomes a {kind}. To make the whole cell one {kind}, write `%%mcp_{kind} "
            f"{name}()`; for functions that exist already, use `%mcp_{kind} f g`."
        )


def _check_names(names: Sequence[str], options: ToolOptions) -> None:
    unique = [option for option in ("name", "title", "description") if getattr(options, option)]
    if unique and len(names) != 1:
        raise DefinitionError(
            f"`--{unique[0]}` describes a single {options.kind}, but there are {len(names)} here: "
            f"{', '.join(names)}. Declare them one at a time."
        )
