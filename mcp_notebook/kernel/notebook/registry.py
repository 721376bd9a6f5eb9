"""``registry`` and ``Tool``: tools declared as data, and added, changed and removed at run time.

Runs on any thread, also inside a tool. `registry` has no state: it looks up the notebook's
extension on each use, so that it keeps working when the extension is reloaded. Its tools do not
follow a variable of the notebook; they exist until they are removed or the extension is unloaded
(``%reload_ext`` keeps them).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from msgspec import structs

from mcp_notebook.errors import DefinitionError, NoSuchTool
from mcp_notebook.kernel.notebook.decorators import check_keywords
from mcp_notebook.kernel.notebook.loaded_extension import LoadedExtension, find_extension
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool, make_tool
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool(ToolOptions):
    """A tool declared as data instead of with a decorator.

    It takes all keywords of ``@mcp_tool``, and a `handler`::

        registry.add(
            Tool(
                name="lookup",
                description="Find a customer.",
                input_schema={
                    "type": "object",
                    "properties": {"id": {"type": "string", "pattern": "^C[0-9]+$"}},
                    "required": ["id"],
                },
                handler=lambda **arguments: customers[arguments["id"]],
            )
        )
    """

    def __new__(cls, *_args: Any, **keywords: Any) -> Self:
        """Refuse unknown keywords with the closest known one."""
        check_keywords(keywords, "`Tool`", [item.name for item in fields(cls)])
        return super().__new__(cls)

    handler: Callable[..., Any]
    """Any callable, also a coroutine function. Gets the arguments as keywords, and the `Context` in
    a parameter annotated with it."""

    def __repr__(self) -> str:
        return f"<Tool {self.name!r}>"


class NotebookTools(Mapping[str, Tool]):
    """The tools of this notebook: a mapping from names to `Tool`, with methods that change it."""

    def add(self, *tools: Tool) -> None:
        """Add tools, all or none. A tool whose name exists already replaces that tool.

        Args:
            tools: The tools, in the order in which clients list them. Clients are notified once.

        Raises:
            DefinitionError: One of them cannot be offered to clients; the message says which, and
                why.
        """
        registry = _get_registry()
        declared = [_declare(tool) for tool in tools]
        names = [tool.name for tool in declared]
        for name in names:
            if names.count(name) > 1:
                raise DefinitionError(f"`{name}` is added twice: rename one of them.")
        registry.add(*declared)
        _get_extension().cell_tools.note_added(names)

    def remove(self, *names: str) -> None:
        """Remove tools, prompts, resources or skills, all or none.

        Functions of the notebook stay defined.

        Raises:
            NoSuchTool: The notebook declares nothing of that name.
        """
        registry = _get_registry()
        present = tuple(tool.name for tool in registry.tools)
        for name in names:
            if name not in present:
                raise NoSuchTool(name, present, is_any=True)
        registry.remove(*names)

    def update(self, name: str, /, **changes: Any) -> None:
        """Change some options of a tool; it keeps its place in the list.

        A tool made from a function of the notebook stops following that function once its
        ``handler`` or ``input_schema`` is changed here.

        Args:
            name: The tool's name.
            changes: Any keywords of `Tool`.

        Raises:
            NoSuchTool: The notebook has no tool of that name.
            DefinitionError: The keyword does not exist, or the changed tool is not valid.
        """
        check_keywords(changes, "`registry.update`", [item.name for item in fields(Tool)])
        registry = _get_registry()
        old = _find_tool(registry, name)
        changes = {"name": name, **changes}
        new = _declare(replace(_describe_tool(old), **changes))
        if not {"handler", "input_schema"} & changes.keys():  # it is still what it follows
            origin = None if old.origin is None else old.origin.with_options(new.options)
            new = structs.replace(new, variable=old.variable, origin=origin, cell=old.cell)
        other = None if new.name == name else registry.get(new.name)
        if other is not None:
            raise DefinitionError(
                f"`{name}` cannot be renamed to `{new.name}`: there is a {other.kind_word} of that "
                "name. Remove that one first."
            )
        registry.replace(old, new)

    def batch(self) -> AbstractContextManager[None]:
        """Return a context manager that notifies clients once of all changes in its block.

        Without it, changes that follow each other within 0.05 s are sent together.
        """
        return _get_registry().batch()

    def __getitem__(self, name: str) -> Tool:
        return _describe_tool(_find_tool(_get_registry(), name))

    def __iter__(self) -> Iterator[str]:
        return iter([tool.name for tool in _list_tools(_get_registry())])

    def __len__(self) -> int:
        return len(_list_tools(_get_registry()))

    def __repr__(self) -> str:
        try:
            return f"<registry of the tools {', '.join(self) or '(none)'}>"
        except DefinitionError as error:
            return f"<registry: {error}>"


registry = NotebookTools()
"""The tools of this notebook."""


def resource_changed(uri: str) -> None:
    """Tell clients that subscribe to a resource that its content has changed.

    Changes by cells and by calls are noticed without it, if they name a variable that the
    resource's function names. Report changes that happen elsewhere: in a thread, or in a file.

    Args:
        uri: The resource's URI as this notebook declares it, with values in place of variables.

    Raises:
        DefinitionError: The extension is not loaded here.
    """
    _get_extension().tell_resource_changed(uri)


def _get_extension() -> LoadedExtension:
    extension = find_extension()
    if extension is None:
        raise DefinitionError(
            "mcp_notebook is not loaded here: run `%load_ext mcp_notebook` in the notebook first."
        )
    return extension


def _get_registry() -> ToolRegistry:
    return _get_extension().registry


def _list_tools(registry: ToolRegistry) -> list[DeclaredTool]:
    return [tool for tool in registry.tools if tool.info.kind == "tool"]


def _find_tool(registry: ToolRegistry, name: str) -> DeclaredTool:
    tool = registry.get(name)
    if tool is None or tool.info.kind != "tool":
        names = tuple(tool.name for tool in _list_tools(registry))
        raise NoSuchTool(name, names, kind=tool.kind_word if tool else None)
    return tool


def _declare(tool: Tool) -> DeclaredTool:
    if not isinstance(tool, Tool):
        raise DefinitionError(
            f"`registry.add` takes `Tool(name=..., handler=...)`, not an object of type "
            f"{type(tool).__name__}. To make a function a tool, use `@mcp_tool`."
        )
    return make_tool(tool.handler, tool, schemas=_get_registry().schemas)


def _describe_tool(tool: DeclaredTool) -> Tool:
    """Return a tool as its author declared it, or as the equivalent `Tool`."""
    if isinstance(tool.options, Tool):
        return replace(
            tool.options,
            name=tool.name,
            handler=tool.function,
            input_schema=deepcopy(tool.options.input_schema),
        )
    options = {item.name: getattr(tool.options, item.name) for item in fields(ToolOptions)}
    return Tool(**{**options, "name": tool.name}, handler=tool.function)
