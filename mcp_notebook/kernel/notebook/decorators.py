"""``@mcp_tool`` and ``@mcp_tools``: declare tools in any cell or module.

Runs in the user's kernel, and wherever else a module with decorated functions is imported: without
a loaded extension it only marks the function or class, whose tools are then declared when
``%load_ext`` finds it in the notebook or ``%mcp_tool`` names it. What the methods of a class become
is `kernel.tools.attribute_tools`' business.
"""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import fields
from typing import Any, Protocol, TypeVar, overload

from IPython.core.getipython import get_ipython

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.attribute_tools import (
    ClassOfTools,
    Origin,
    make_object_tools,
    mark_class,
)
from mcp_notebook.kernel.tools.context import LogLevel
from mcp_notebook.kernel.tools.declared_tool import make_tool, mark
from mcp_notebook.kernel.tools.options import RunMode, ToolOptions
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)

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
    examples: Sequence[Mapping[str, Any]] | Mapping[str, Any] = (),
    priority: float = 0,
    related: Sequence[str] = (),
    tags: Sequence[str] = (),
    meta: Mapping[str, Any] | None = None,
    cache: float | str | None = None,
    input_schema: Mapping[str, Any] | None = None,
    output_schema: bool | Mapping[str, Any] | None = None,
    validate_output: bool = True,
    flatten: bool = False,
    run: RunMode = "main",
    executor: Executor | None = None,
    timeout: float | str | None = None,
    max_concurrency: int | None = None,
    max_result_chars: int | None = None,
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
    examples: Sequence[Mapping[str, Any]] | Mapping[str, Any] = (),
    priority: float = 0,
    related: Sequence[str] = (),
    tags: Sequence[str] = (),
    meta: Mapping[str, Any] | None = None,
    cache: float | str | None = None,
    input_schema: Mapping[str, Any] | None = None,
    output_schema: bool | Mapping[str, Any] | None = None,
    validate_output: bool = True,
    flatten: bool = False,
    run: RunMode = "main",
    executor: Executor | None = None,
    timeout: float | str | None = None,
    max_concurrency: int | None = None,
    max_result_chars: int | None = None,
    logs: LogLevel | None = None,
    **unknown: Any,
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
        examples: Arguments of calls (or of one call), shown to the model in the description.
        priority: Tools of a higher priority are listed first.
        related: Names of tools that a model should know of when it reads of this one.
        tags: Words to group tools by.
        meta: ``_meta`` of your own for the tool, under reverse-DNS keys.
        cache: How long (``60``, ``"5min"``) a result is given again for the same arguments, of
            read-only tools; ``"ephemeral"``: never, and clients are told so.
        input_schema: A JSON Schema 2020-12 of the arguments, in place of the one that the signature
            gives; the function gets them by keyword, and may take ``**arguments``.
        output_schema: A JSON Schema of structured results; True: made from the return annotation,
            whatever it is; False: none; None: made from it where it says what a program could use.
        validate_output: Refuse a result that does not match the output schema.
        flatten: The fields of the function's one parameter, a model, are the tool's arguments.
        run: ``"main"``: between cells, as if the user had run a cell (coroutine functions: on the
            kernel's event loop); ``"thread"``: in a thread of its own, also while a cell runs.
        executor: Runs the calls, a ``ProcessPoolExecutor`` for instance.
        timeout: Seconds (or ``"30s"``, ``"5min"``) after which a call is stopped.
        max_concurrency: Calls that may run at once; more of them wait.
        max_result_chars: Characters of text in one result, in place of the setting's; what is
            longer is cut in the middle, and says so.
        logs: Log messages of this level and above become part of the result.
        unknown: Refused, with the option that was meant.

    Raises:
        DefinitionError: The function cannot be a tool as it is written, or there is no such option.
    """
    _check_unknown(unknown, "mcp_tool", (option.name for option in fields(ToolOptions)))
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
        input_schema=input_schema,
        output_schema=output_schema,
        validate_output=validate_output,
        flatten=flatten,
        run=run,
        executor=executor,
        timeout=timeout,
        max_concurrency=max_concurrency,
        max_result_chars=max_result_chars,
        logs=logs,
    )

    def decorate(function: _F) -> _F:
        _check_decorated(function)
        mark(function, options)
        extension = _loaded()
        if extension is not None and not _in_class_body(function):
            registry = extension.registry
            variable = _variable(function)
            registry.add(make_tool(function, options, variable=variable, schemas=registry.schemas))
        return function

    return decorate if function is None else decorate(function)


@overload
def mcp_tools(owner: _C, /) -> _C: ...
@overload
def mcp_tools(*, prefix: str = "") -> Callable[[_C], _C]: ...
def mcp_tools(
    owner: _C | None = None, /, *, prefix: str = "", **unknown: Any
) -> _C | Callable[[_C], _C]:
    """Make the methods of a class that ``@mcp_tool`` marks tools of one object.

    The object is made here, without arguments, and is the class's attribute ``mcp_instance``: what
    a tool leaves on ``self`` the next call finds. For an object that you make yourself there is
    ``%mcp_tool obj``. As the outermost decorator, above ``@dataclass``, say.

    Args:
        owner: The class, when the decorator is used without parentheses.
        prefix: What the names of the tools begin with.
        unknown: Refused, with the option that was meant.

    Raises:
        DefinitionError: The class needs arguments, has no marked methods, or one of them cannot be
            a tool.
    """
    # An error of the class's own constructor is shown without these frames.
    __tracebackhide__ = True
    _check_unknown(unknown, "mcp_tools", ("prefix",))

    def decorate(owner: _C) -> _C:
        __tracebackhide__ = True
        if not isinstance(owner, type):
            raise DefinitionError(
                f"`@mcp_tools` is for a class, not for {_kind(owner)}: use `@mcp_tool`."
            )
        _declare(owner, mark_class(owner, prefix))
        return owner

    return decorate if owner is None else decorate(owner)


def _declare(owner: type, made: ClassOfTools) -> None:
    """Offer the tools of a class, in place of those that the class had before."""
    extension, variable = _loaded(), _variable(owner)
    if extension is None:
        return
    origin = Origin(
        word=variable or f"{owner.__module__}.{owner.__qualname__}",
        value=owner,
        is_object=True,
        schemas=extension.registry.schemas,
        is_variable=variable is not None,
    )
    tools = make_object_tools(made.instance, made.prefix, origin)
    names = {tool.name for tool in tools}
    old = [
        tool.name
        for tool in extension.registry.tools
        if isinstance(tool.origin, Origin)
        and (tool.origin.word, tool.origin.is_object) == (origin.word, True)
        and tool.name not in names
    ]
    extension.registry.remove(*old)
    extension.registry.add(*tools)


def _loaded() -> _Extension | None:
    extension: _Extension | None = getattr(get_ipython(), EXTENSION, None)
    return extension


# -- what cannot be decorated ----------------------------------------------------------------------


def _check_unknown(unknown: Iterable[str], decorator: str, known: Iterable[str]) -> None:
    for option in unknown:
        known = tuple(known)
        close = difflib.get_close_matches(option, known, 1)
        hint = f"Did you mean `{close[0]}`?" if close else f"It has {', '.join(known)}."
        raise DefinitionError(f"`@{decorator}` has no option `{option}`. {hint}")


def _check_decorated(function: Any) -> None:
    if isinstance(function, type):
        raise DefinitionError(
            f"`@mcp_tool` is for functions, and `{function.__name__}` is a class: put `@mcp_tool` "
            "above its methods that shall be tools, and `@mcp_tools` above the class."
        )
    if isinstance(function, str):
        raise DefinitionError(
            f"`@mcp_tool({function!r})`: options are keywords: `@mcp_tool(name={function!r})`."
        )
    if not callable(function) and not isinstance(function, classmethod):
        raise DefinitionError(
            f"`@mcp_tool` is for functions, not for {_kind(function)}: put it above a `def`."
        )
    if isinstance(function, classmethod) and not _in_class_body(function):
        raise DefinitionError(
            "`@mcp_tool` found a classmethod that is in no class: leave `@classmethod` out."
        )


def _kind(value: Any) -> str:
    return f"an object of type {type(value).__name__}"


def _in_class_body(function: Any) -> bool:
    """Tell whether a function is being defined in the body of a class, whose method it will be."""
    scope = str(getattr(function, "__qualname__", "")).rpartition(".")[0]
    return bool(scope) and not scope.endswith("<locals>") and not inspect.ismethod(function)


def _variable(function: Any) -> str | None:
    """Return the notebook's variable that will hold what is decorated, if one will."""
    if getattr(function, "__module__", None) != "__main__":
        return None
    name = getattr(function, "__qualname__", "")
    return name if name.isidentifier() else None
