"""``@mcp_tool``: declares a tool in any cell or module.

Runs in the user's kernel, and wherever else a module with decorated functions is imported: without
a loaded extension it only marks the function, which then becomes a tool when ``%load_ext`` finds it
in the notebook or ``%mcp_tool`` names it.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar, overload

from IPython.core.getipython import get_ipython

from mcp_notebook.kernel.calls import RunMode
from mcp_notebook.kernel.context import LogLevel
from mcp_notebook.kernel.options import ToolOptions
from mcp_notebook.kernel.tools import ToolRegistry, make_tool, mark

_F = TypeVar("_F", bound=Callable[..., Any])

EXTENSION = "_mcp_notebook"
"""Attribute of the shell that holds the loaded `kernel.extension.Extension`."""


class _Extension(Protocol):
    registry: ToolRegistry


@overload
def mcp_tool(function: _F, /) -> _F: ...
@overload
def mcp_tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    icons: Sequence[Any] = (),
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    examples: Sequence[Mapping[str, Any]] = (),
    priority: float = 0,
    related: Sequence[str] = (),
    tags: Sequence[str] = (),
    meta: Mapping[str, Any] | None = None,
    cache: float | str | None = None,
    output_schema: bool | Mapping[str, Any] | None = None,
    validate_output: bool = True,
    flatten: bool = False,
    run: RunMode = "main",
    executor: Executor | None = None,
    timeout: float | str | None = None,
    max_concurrency: int | None = None,
    logs: LogLevel | None = None,
) -> Callable[[_F], _F]: ...
def mcp_tool(  # noqa: PLR0913 - each keyword is an option
    function: _F | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    icons: Sequence[Any] = (),
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    examples: Sequence[Mapping[str, Any]] = (),
    priority: float = 0,
    related: Sequence[str] = (),
    tags: Sequence[str] = (),
    meta: Mapping[str, Any] | None = None,
    cache: float | str | None = None,
    output_schema: bool | Mapping[str, Any] | None = None,
    validate_output: bool = True,
    flatten: bool = False,
    run: RunMode = "main",
    executor: Executor | None = None,
    timeout: float | str | None = None,
    max_concurrency: int | None = None,
    logs: LogLevel | None = None,
) -> _F | Callable[[_F], _F]:
    """Make a function a tool that MCP clients can call; the function itself stays as it is.

    Args:
        function: The function, when the decorator is used without parentheses.
        name: The tool's name for clients, in place of the function's.
        title: A name for people.
        description: What the tool does, in place of the docstring's text.
        icons: Pictures for the tool: each an `Icon`, an ``https:`` or ``data:`` address, a path or
            a PIL image.
        read_only: It changes nothing. (Said of none of these four, clients suppose the worst.)
        destructive: It may destroy, not only add.
        idempotent: A second call with the same arguments changes nothing more.
        open_world: It deals with more than the notebook: the web, say.
        examples: Arguments of calls, shown to the model in the description.
        priority: Tools of a higher priority are listed first.
        related: Names of tools that a model should know of when it reads of this one.
        tags: Words to group tools by.
        meta: ``_meta`` of your own for the tool, under reverse-DNS keys.
        cache: How long (``60``, ``"5min"``) a result is given again for the same arguments, of
            read-only tools; ``"ephemeral"``: never, and clients are told so.
        output_schema: A JSON Schema of structured results; True: made from the return annotation,
            whatever it is; False: none; None: made from it where it says what a program could use.
        validate_output: Refuse a result that does not match the output schema.
        flatten: The fields of the function's one parameter, a model, are the tool's arguments.
        run: ``"main"``: between cells, as if the user had run a cell (coroutine functions: on the
            kernel's event loop); ``"thread"``: in a thread of its own, also while a cell runs.
        executor: Runs the calls, a ``ProcessPoolExecutor`` for instance.
        timeout: Seconds (or ``"30s"``, ``"5min"``) after which a call is stopped.
        max_concurrency: Calls that may run at once; more of them wait.
        logs: Log messages of this level and above become part of the result.

    Raises:
        DefinitionError: The function cannot be a tool as it is written.
    """
    options = ToolOptions(
        name=name,
        title=title,
        description=description,
        icons=icons,
        read_only=read_only,
        destructive=destructive,
        idempotent=idempotent,
        open_world=open_world,
        examples=examples,
        priority=priority,
        related=related,
        tags=tags,
        meta=meta or {},
        cache=cache,
        output_schema=output_schema,
        validate_output=validate_output,
        flatten=flatten,
        run=run,
        executor=executor,
        timeout=timeout,
        max_concurrency=max_concurrency,
        logs=logs,
    )

    def decorate(function: _F) -> _F:
        extension: _Extension | None = getattr(get_ipython(), EXTENSION, None)
        if extension is not None:
            registry = extension.registry
            variable = _variable(function)
            registry.add(make_tool(function, options, variable=variable, schemas=registry.schemas))
        return mark(function, options)

    return decorate if function is None else decorate(function)


def _variable(function: Callable[..., Any]) -> str | None:
    """Return the notebook's variable that will hold a decorated function, if one will."""
    if getattr(function, "__module__", None) != "__main__":
        return None
    name = getattr(function, "__qualname__", "")
    return name if name.isidentifier() else None
