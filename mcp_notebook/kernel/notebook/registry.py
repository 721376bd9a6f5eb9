"""``registry`` and ``Tool``: tools from data, added, changed and removed at run time.

Runs in the user's kernel, on any thread, also inside a tool. `registry` holds nothing: it finds the
extension of the notebook at each use, so that it stays right when the extension is loaded anew. Its
tools follow no variable of the notebook; they live until they are removed or the extension is
unloaded.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar, overload

from IPython.core.getipython import get_ipython

from mcp_notebook.errors import DefinitionError, NoSuchTool
from mcp_notebook.kernel.notebook.decorators import EXTENSION
from mcp_notebook.kernel.results.custom_types import CustomTypes
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool, make_tool
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])
_MISSING: Any = object()


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool(ToolOptions):
    """A tool, declared with data in place of a decorated function.

    All keywords of ``@mcp_tool`` are keywords here, too::

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

    def __new__(cls, *_args: Any, **given: Any) -> Self:
        """Refuse keywords that are none, with the closest one that is."""
        known = [item.name for item in fields(cls)]
        for word in given.keys() - known:
            close = difflib.get_close_matches(word, known, 1)
            hint = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(known)}."
            raise DefinitionError(f"`Tool` has no `{word}`; {hint}")
        return super().__new__(cls)

    handler: Callable[..., Any]
    """Any callable, coroutine functions too: gets the arguments by keyword, and the `Context` in a
    parameter annotated with it."""

    def __repr__(self) -> str:
        return f"<Tool {self.name!r}>"


class Registry(Mapping[str, Tool]):
    """The tools of this notebook, by name: ``registry["lookup"]``, ``"lookup" in registry``..."""

    def add(self, *tools: Tool) -> None:
        """Add tools, all or none; one whose name exists takes the place of the old one.

        Args:
            tools: What clients shall see, in this order. They are told once.

        Raises:
            DefinitionError: One of them cannot be offered to clients; says which and why.
        """
        registry = _tools()
        declared = [_declared(tool) for tool in tools]
        names = [tool.name for tool in declared]
        for name in names:
            if names.count(name) > 1:
                raise DefinitionError(f"`{name}` is added twice: give one of them another name.")
        registry.add(*declared)

    def remove(self, *names: str) -> None:
        """Remove tools, all or none; functions of the notebook stay.

        Raises:
            NoSuchTool: There is no tool of that name.
        """
        registry = _tools()
        for name in names:
            _find(registry, name)
        registry.remove(*names)

    def update(self, name: str, /, **changes: Any) -> None:
        """Change what is given, and nothing else, of a tool; it keeps its place.

        A tool that was made of a function of the notebook follows its name no more once its
        ``handler`` or ``input_schema`` is changed here.

        Args:
            name: The tool's name.
            changes: Any keyword of `Tool`.

        Raises:
            NoSuchTool: There is no tool of that name.
            DefinitionError: There is no such keyword, or the tool cannot be so.
        """
        known = [item.name for item in fields(Tool)]
        for word in changes:
            if word not in known:
                close = difflib.get_close_matches(word, known, 1)
                hint = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(known)}."
                raise DefinitionError(f"`{name}`: a tool has no `{word}`; {hint}")
        registry = _tools()
        old = _find(registry, name)
        changes = {"name": name, **changes}
        new = _declared(replace(_described(old), **changes))
        if not {"handler", "input_schema"} & changes.keys():  # it is still what it follows
            origin = None if old.origin is None else old.origin.with_options(new.options)
            new = replace(new, variable=old.variable, origin=origin)
        if new.name != name and registry.get(new.name) is not None:
            raise DefinitionError(
                f"`{name}` cannot be named `{new.name}`: there is a tool of that name; remove it "
                "first."
            )
        registry.replace(old, new)

    def batch(self) -> AbstractContextManager[None]:
        """Tell clients once of all changes in a ``with`` block, however long it takes.

        Without it, changes that follow each other within 0.05 s are told together.
        """
        return _tools().batch()

    @overload
    def convert(self, kind: type[_T], function: Callable[[_T], Any] | None, /) -> None: ...
    @overload
    def convert(self, kind: str, function: Callable[[Any], Any] | None, /) -> None: ...
    @overload
    def convert(self, kind: type | str, /) -> Callable[[_F], _F]: ...

    def convert(self, kind: Any, function: Any = _MISSING, /) -> Any:
        """Have all values of a type that tools return given to clients as something else.

        ::

            registry.convert(Portfolio, lambda portfolio: portfolio.summary())

            @registry.convert("polars.DataFrame")
            def table(frame):
                return frame.head(5).to_pandas()

        Also where they are items of a list or dict, and the values of subclasses that have no
        converter of their own. Displays and structured content stay as they are. Like the tools of
        `registry`, a converter lives until the extension is unloaded.

        Args:
            kind: The class, or its full name if its library may not have been imported yet.
            function: Gets the value, returns anything that a tool may return; its value as it is
                for what it does not want to convert. None takes the converter away.

        Raises:
            DefinitionError: There can be no such converter.
        """
        extension = _extension()
        custom_types: CustomTypes = extension.custom_types

        def set_(given: Any) -> Any:
            custom_types.set(kind, given)
            extension.invoker.cache.clear()  # of results that it would have converted
            return given

        if function is _MISSING:
            return set_
        set_(function)
        return None

    def __getitem__(self, name: str) -> Tool:
        return _described(_find(_tools(), name))

    def __iter__(self) -> Iterator[str]:
        return iter([tool.name for tool in _tools().tools])

    def __len__(self) -> int:
        return len(_tools().tools)

    def __repr__(self) -> str:
        try:
            return f"<registry of the tools {', '.join(self) or '(none)'}>"
        except DefinitionError as error:
            return f"<registry: {error}>"


registry = Registry()
"""The tools of this notebook."""


def _extension() -> Any:
    extension = getattr(get_ipython(), EXTENSION, None)
    if extension is None:
        raise DefinitionError(
            "There is no notebook to have tools here: run `%load_ext mcp_notebook` in it first."
        )
    return extension


def _tools() -> ToolRegistry:
    found: ToolRegistry = _extension().registry
    return found


def _find(registry: ToolRegistry, name: str) -> DeclaredTool:
    tool = registry.get(name)
    if tool is None:
        raise NoSuchTool(name, tuple(tool.name for tool in registry.tools))
    return tool


def _declared(tool: Tool) -> DeclaredTool:
    if not isinstance(tool, Tool):
        raise DefinitionError(
            f"`registry.add` takes `Tool(name=..., handler=...)`, not a {type(tool).__name__}; of "
            "a function `@mcp_tool` makes a tool."
        )
    return make_tool(tool.handler, tool, schemas=_tools().schemas)


def _described(tool: DeclaredTool) -> Tool:
    """Return a tool as its author declared it, or would have."""
    if isinstance(tool.options, Tool):
        return replace(
            tool.options,
            name=tool.name,
            handler=tool.function,
            input_schema=deepcopy(tool.options.input_schema),
        )
    said = {item.name: getattr(tool.options, item.name) for item in fields(ToolOptions)}
    return Tool(**{**said, "name": tool.name}, handler=tool.function)
