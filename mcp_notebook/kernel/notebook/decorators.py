"""``@mcp_tool``, ``@mcp_tools``, ``@mcp_prompt``, ``@mcp_resource``, ``@mcp_skill``.

Runs on the thread that defines the function. Without a loaded extension, the decorators only mark
the function or class. ``%load_ext`` then declares the marked ones in the notebook, and
``%mcp_tool`` those that it names.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar, Unpack, overload

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.notebook.loaded_extension import find_cell, find_extension
from mcp_notebook.kernel.notebook.magics.option_help import document_keywords
from mcp_notebook.kernel.tools.attribute_tools import (
    ClassOfTools,
    Origin,
    make_object_tools,
    mark_class,
)
from mcp_notebook.kernel.tools.declared_tool import make_tool, mark, mark_skill, note_cell
from mcp_notebook.kernel.tools.options import (
    PROMPT_OPTIONS,
    RESOURCE_OPTIONS,
    PromptKeywords,
    PromptOptions,
    ResourceKeywords,
    ResourceOptions,
    ToolKeywords,
    ToolOptions,
)
from mcp_notebook.kernel.tools.resource_templates import read_variables
from mcp_notebook.kernel.tools.skills import (
    SkillOrigin,
    describe_skill,
    make_skill_tool,
    read_docstring_skill,
)
from mcp_notebook.text.terminal import print_note, print_output
from mcp_notebook.text.wording import suggest

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)
_V = TypeVar("_V")


@overload
def mcp_tool(function: _F, /) -> _F: ...
@overload
def mcp_tool(**options: Unpack[ToolKeywords]) -> Callable[[_F], _F]: ...
def mcp_tool(
    function: _F | None = None, /, **options: Unpack[ToolKeywords]
) -> _F | Callable[[_F], _F]:
    """Make a function a tool that MCP clients can call; the function itself does not change.

    Use it bare or with options::

        @mcp_tool
        def rain(city: str) -> float: ...

        @mcp_tool(read_only=True, timeout="30s")
        def snow(city: str) -> float: ...

    Args:
        function: The function, when the decorator is used without parentheses.
        options: The tool's options; ``mcp_tool?`` in a notebook explains each of them.

    Raises:
        DefinitionError: The function cannot be a tool, or an option does not exist.
    """
    check_keywords(options, "`@mcp_tool`", [option.name for option in fields(ToolOptions)])
    return _decorate(function, ToolOptions(**options))


document_keywords(mcp_tool)


@overload
def mcp_prompt(function: _F, /) -> _F: ...
@overload
def mcp_prompt(**options: Unpack[PromptKeywords]) -> Callable[[_F], _F]: ...
def mcp_prompt(
    function: _F | None = None, /, **options: Unpack[PromptKeywords]
) -> _F | Callable[[_F], _F]:
    """Make a function a prompt that MCP clients offer their users; the function does not change.

    It returns text, or `Message` objects, pictures and tables. Use it bare or with options::

        @mcp_prompt
        def weekly_report(year: int) -> str:
            return f"Write a report on {year}. There are {len(orders)} orders."

        @mcp_prompt(title="Weekly report", timeout="30s")
        def report(year: int) -> list: ...

    Args:
        function: The function, when the decorator is used without parentheses.
        options: The prompt's options; ``mcp_prompt?`` in a notebook explains each of them.

    Raises:
        DefinitionError: The function cannot be a prompt, or an option does not exist.
    """
    check_keywords(options, "`@mcp_prompt`", [*PROMPT_OPTIONS])
    return _decorate(function, PromptOptions(**options))


document_keywords(mcp_prompt, "prompt")


def mcp_resource(uri: str, /, **options: Unpack[ResourceKeywords]) -> Callable[[_F], _F]:
    """Make a function a resource that MCP clients can read; the function does not change.

    It returns text, bytes, a table, data, a plot, or the path of a file::

        @mcp_resource("data://orders", mime_type="text/csv")
        def orders_table():
            return orders

        @mcp_resource("frame://{name}")
        def frame(name: str):
            return {"orders": orders, "customers": customers}[name]

    Args:
        uri: The URI, or a template of which the variables are the function's parameters: ``{name}``
            for a value without slashes, ``{+path}`` for one with slashes, and at the end
            ``{?first,second}`` for optional ones.
        options: The resource's options; ``mcp_resource?`` in a notebook explains each of them.

    Raises:
        DefinitionError: The function cannot be a resource, or the URI or an option is invalid.
    """
    if not isinstance(uri, str):
        raise DefinitionError(
            '`@mcp_resource` needs a URI: write `@mcp_resource("data://orders")`.'
        )
    check_keywords(options, "`@mcp_resource`", [*RESOURCE_OPTIONS])
    read_variables(uri)
    resource_options = ResourceOptions(uri=uri, **options)

    def decorate(function: _F) -> _F:
        return _declare(function, resource_options)

    return decorate


document_keywords(mcp_resource, "resource")


@overload
def mcp_skill(value: _V, /) -> _V: ...
@overload
def mcp_skill(
    *, description: str | None = None, tags: Sequence[str] = ()
) -> Callable[[_V], _V]: ...
def mcp_skill(
    value: _V | None = None,
    /,
    *,
    description: str | None = None,
    tags: Sequence[str] = (),
    **unknown: Any,
) -> _V | Callable[[_V], _V]:
    """Make a docstring a skill that tells assistants how to work with the notebook.

    The docstring is Markdown. The skill is named like the function, class or module, with hyphens;
    its description is the first paragraph::

        @mcp_skill
        class WeeklyReport:
            '''Use this for the report of a week.

            First call `rain`, then write a paragraph on each region.
            '''

    The docstring may instead begin with front matter between lines of ``---``, as a cell below
    ``%%mcp_skill``. The object itself does not change, and may be a tool as well.

    Args:
        value: The object, when the decorator is used without parentheses.
        description: When to use the skill; by default the first paragraph.
        tags: Words to group it by, as those of tools.
        unknown: Refused, with the option that was probably meant.

    Raises:
        DefinitionError: The object has no docstring, or it cannot be a skill.
    """
    check_keywords(unknown, "`@mcp_skill`", ["description", "tags"])

    def decorate(value: _V) -> _V:
        file = read_docstring_skill(value, description)
        variable = _find_variable(value)
        origin = None if variable is None else SkillOrigin(variable, value)
        skill = make_skill_tool(file, tuple(tags), origin)
        mark_skill(value, skill)
        extension = find_extension()
        if extension is not None and extension.cell_tools.add(skill):
            print_output(describe_skill(skill))
        return value

    return decorate if value is None else decorate(value)


def _decorate(function: _F | None, options: ToolOptions) -> _F | Callable[[_F], _F]:
    """Declare a function; without one, as below a decorator with parentheses, return what does."""

    def decorate(function: _F) -> _F:
        return _declare(function, options)

    return decorate if function is None else decorate(function)


def _declare(function: _F, options: ToolOptions) -> _F:
    """Offer a decorated function to clients, as soon as that is possible."""
    _check_decorated(function, f"@mcp_{options.kind}")
    mark(function, options)
    extension = find_extension()
    if extension is None:
        note_cell(function, find_cell())
    elif _in_class_body(function):
        pass  # a tool as soon as there is an object
    elif _is_method(function):
        print_note(_explain_method(function))
    else:
        variable = _find_variable(function)
        schemas = extension.registry.schemas
        extension.cell_tools.add(make_tool(function, options, variable=variable, schemas=schemas))
    return function


@overload
def mcp_tools(owner: _C, /) -> _C: ...
@overload
def mcp_tools(*, prefix: str = "") -> Callable[[_C], _C]: ...
def mcp_tools(
    owner: _C | None = None, /, *, prefix: str = "", **unknown: Any
) -> _C | Callable[[_C], _C]:
    """Make the methods of a class that are marked with ``@mcp_tool`` tools of one object.

    The decorator calls the class without arguments, and keeps the object as the attribute
    ``mcp_instance`` of the class: what one call stores on ``self``, the next call finds. To use an
    object that you create yourself, write ``%mcp_tool obj`` instead. Put this decorator outermost,
    for example above ``@dataclass``.

    Args:
        owner: The class, when the decorator is used without parentheses.
        prefix: What the names of the tools begin with.
        unknown: Refused, with the option that was probably meant.

    Raises:
        DefinitionError: The class needs arguments, has no marked methods, or one of them cannot be
            a tool.
    """
    __tracebackhide__ = True  # an error in the class's constructor shows the cell, not these frames
    check_keywords(unknown, "`@mcp_tools`", ["prefix"])

    def decorate(owner: _C) -> _C:
        __tracebackhide__ = True
        if not isinstance(owner, type):
            raise DefinitionError(
                f"`@mcp_tools` is for classes, not for {_describe_type(owner)}: use `@mcp_tool`."
            )
        _declare_class(owner, mark_class(owner, prefix))
        return owner

    return decorate if owner is None else decorate(owner)


def _declare_class(owner: type, mark: ClassOfTools) -> None:
    """Offer the tools of a class, in place of those that it had before."""
    extension, variable = find_extension(), _find_variable(owner)
    if extension is None:
        note_cell(owner, find_cell())
        return
    origin = Origin(
        word=variable or f"{owner.__module__}.{owner.__qualname__}",
        value=owner,
        is_object=True,
        schemas=extension.registry.schemas,
        is_variable=variable is not None,
    )
    tools = make_object_tools(mark.instance, mark.prefix, origin)
    names = {tool.name for tool in tools}
    old = [
        tool.name
        for tool in extension.registry.tools
        if isinstance(tool.origin, Origin)
        and (tool.origin.word, tool.origin.is_object) == (origin.word, True)
        and tool.name not in names
    ]
    extension.registry.remove(*old)
    extension.cell_tools.add(*tools)


# -- checks ----------------------------------------------------------------------------------------


def check_keywords(keywords: Iterable[str], owner: str, keyword_names: list[str]) -> None:
    """Refuse a keyword that does not exist, with the one that was probably meant.

    Args:
        keywords: The given keywords.
        owner: The decorator or class, for the message.
        keyword_names: The keywords that exist.

    Raises:
        DefinitionError: One of them does not exist.
    """
    for keyword in keywords:
        if keyword not in keyword_names:
            meant = suggest(keyword, keyword_names)
            hint = f"Did you mean `{meant}`?" if meant else f"It has {', '.join(keyword_names)}."
            raise DefinitionError(f"{owner} has no option `{keyword}`. {hint}")


def _check_decorated(function: Any, decorator: str) -> None:
    if isinstance(function, type):
        raise DefinitionError(
            f"`{decorator}` is for functions, and `{function.__name__}` is a class: put "
            f"`{decorator}` above the methods that should be offered, and `@mcp_tools` above the "
            "class."
        )
    if isinstance(function, str):
        raise DefinitionError(
            f"`{decorator}({function!r})`: options are keywords. Write "
            f"`{decorator}(name={function!r})`."
        )
    if not callable(function) and not isinstance(function, classmethod):
        raise DefinitionError(
            f"`{decorator}` is for functions, not for {_describe_type(function)}: put it above a "
            "`def`."
        )
    if isinstance(function, classmethod) and not _in_class_body(function):
        raise DefinitionError(
            f"`{decorator}` is above a classmethod outside of a class: remove `@classmethod`."
        )


def _describe_type(value: Any) -> str:
    return f"an object of type {type(value).__name__}"


def _in_class_body(function: Any) -> bool:
    """Return whether a function is being defined in the body of a class, as its method."""
    scope = _find_class_name(function)
    frame = inspect.currentframe() if scope else None
    while frame is not None:
        is_body = not frame.f_code.co_flags & inspect.CO_OPTIMIZED
        if is_body and frame.f_locals.get("__qualname__") == scope:
            return True
        frame = frame.f_back
    return False


def _is_method(function: Any) -> bool:
    """Return whether a function is an unbound method of an existing class."""
    scope = _find_class_name(function)
    if not scope or inspect.ismethod(function):
        return False
    owner: Any = getattr(inspect.unwrap(function), "__globals__", {})
    for name in scope.split("."):
        owner = (owner if isinstance(owner, Mapping) else vars(owner)).get(name)
        if not isinstance(owner, type):  # `functools.wraps` copies a method's name
            return next(iter(inspect.signature(function).parameters), "") in ("self", "cls")
    return vars(owner).get(function.__name__) is function


def _find_class_name(function: Any) -> str:
    """Return the qualified name of the class in which a function was defined; "" without one."""
    scope = str(getattr(function, "__qualname__", "")).rpartition(".")[0]
    return "" if scope.endswith("<locals>") else scope


def _explain_method(function: Any) -> str:
    """Return the note for an author who has decorated a method outside of its class."""
    name = function.__name__
    owner = _find_class_name(function).rpartition(".")[2]
    variable = owner.lower()
    return (
        f"`{owner}.{name}` is a method, so it becomes a tool with its object: create one, "
        f"`{variable} = {owner}(...)`, and write `%mcp_tool {variable}` (all methods marked with "
        f"`@mcp_tool`) or `%mcp_tool {variable}.{name}`."
    )


def _find_variable(function: Any) -> str | None:
    """Return the notebook's variable that will hold the decorated object; None if none will."""
    if getattr(function, "__module__", None) != "__main__":
        return None
    name = getattr(function, "__qualname__", "")
    return name if name.isidentifier() else None
