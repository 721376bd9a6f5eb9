"""Tools that are attributes: methods of an object, ``module.function``, ``model.predict``.

Runs in the user's kernel, on the thread that declares them. A class can mark some of its methods
with ``@mcp_tool``. An object of it, or the single object of a class under ``@mcp_tools``, then
offers them as tools that share its state. The words on a magic's line are resolved here, and again
when a word's variable has changed.
"""

import builtins
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from msgspec import Struct, structs

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.schema_cache import SchemaCache
from mcp_notebook.kernel.tools.declared_tool import (
    DeclaredTool,
    find_marked,
    make_tool,
    merge_mark,
    read_mark,
    read_own_mark,
)
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.text.wording import suggest

CLASS_MARK = "__mcp_tools__"
"""Attribute of a class under ``@mcp_tools``: its `ClassOfTools`."""
INSTANCE = "mcp_instance"
"""Attribute of such a class: the single object whose methods are the tools."""

_UNDEFINED = object()
_PREFIX = re.compile(r"[A-Za-z0-9_-]*")


class ClassOfTools(Struct, frozen=True):
    """The mark that ``@mcp_tools`` leaves on a class."""

    instance: Any
    prefix: str


class Origin(Struct, frozen=True, kw_only=True, eq=False):
    """The word and the value that tools were made from, so that they can follow changes."""

    word: str
    """The word on the magic's line: ``counter``, ``model.predict``."""
    value: Any
    """The value of the word's variable when the tools were made."""
    options: ToolOptions | None = None
    prefix: str | None = None
    is_object: bool = False
    """Whether the tools are methods of an object."""
    schemas: SchemaCache | None = None
    """Schemas of earlier starts."""
    is_variable: bool = True
    """False for a class in a module, which the notebook's variables do not include."""

    def is_current(self, namespace: Mapping[str, Any]) -> bool:
        """Return whether the variable still holds the same object; attributes may differ."""
        return (
            not self.is_variable
            or namespace.get(_get_variable(self.word), _UNDEFINED) is self.value
        )

    def with_options(self, options: ToolOptions) -> "Origin":
        """Return the same origin with other options; marked methods keep their own."""
        return self if self.is_object else structs.replace(self, options=options)

    def make_tools(self, namespace: Mapping[str, Any]) -> list[DeclaredTool]:
        """Make the tools again from the variable's present value; none if it was deleted.

        Raises:
            DefinitionError: The value cannot become tools.
        """
        if _get_variable(self.word) not in namespace:
            return []
        if self.is_object:
            value = _look_up(self.word, namespace)
            if find_owner(value, self.word)[0] is None:
                raise DefinitionError(
                    f"`{self.word}` is now of type {type(value).__name__}, which has no methods "
                    "marked `@mcp_tool`."
                )
        return make_tools_by_name(
            self.word, namespace, self.options, prefix=self.prefix, schemas=self.schemas
        )


def make_tools_by_name(
    word: str,
    namespace: Mapping[str, Any],
    options: ToolOptions | None = None,
    *,
    prefix: str | None = None,
    schemas: SchemaCache | None = None,
) -> list[DeclaredTool]:
    """Make the tools that a word on a magic's line stands for.

    Args:
        word: A variable of the notebook, or an attribute of one: ``f``, ``statistics.mean``.
        namespace: The notebook's variables.
        options: The options on the line; a decorator's complete them. None: a decorator's.
        prefix: The prefix of the names of an object's tools.
        schemas: Schemas of earlier starts.

    Returns:
        One tool, with the last part of the word as its name; for an object with marked methods,
        one for each of them.

    Raises:
        DefinitionError: The word does not exist in the notebook, or cannot be a tool.
    """
    variable, value = _get_variable(word), _look_up(word, namespace)
    origin = Origin(
        word=word, value=namespace[variable], options=options, prefix=prefix, schemas=schemas
    )
    owner, own_prefix = find_owner(value, word)
    if owner is not None:
        if options is not None and options != type(options)():
            raise DefinitionError(
                f"`{word}` is an object with tools: write the options of each at its method, "
                "`@mcp_tool(timeout=...)`; the line takes only `--prefix`."
            )
        chosen = own_prefix if prefix is None else prefix
        return make_object_tools(owner, chosen, structs.replace(origin, is_object=True))
    if prefix is not None:
        raise DefinitionError(
            f"`--prefix` is for an object with methods marked `@mcp_tool`; `{word}` is of type "
            f"{type(value).__name__}: use `--name`."
        )
    if options is not None:
        options = merge_mark(options, value)
    if variable == word:
        return [make_tool(value, options, variable=variable, schemas=schemas)]
    declared = options or read_mark(value) or ToolOptions()
    renamed = replace(declared, name=declared.name or word.rpartition(".")[2])
    return [structs.replace(make_tool(value, renamed, schemas=schemas), origin=origin)]


def make_object_tools(owner: Any, prefix: str, origin: Origin) -> list[DeclaredTool]:
    """Make the tools of an object with marked methods.

    Args:
        owner: The object.
        prefix: The prefix of their names.
        origin: Where in the notebook the object is.

    Raises:
        DefinitionError: One of the methods cannot be a tool.
    """
    check_prefix(prefix)
    return [
        structs.replace(
            make_tool(
                getattr(owner, name),
                replace(options, name=f"{prefix}{options.name or name}"),
                schemas=origin.schemas,
            ),
            origin=origin,
        )
        for name, options in find_marked_methods(type(owner)).items()
    ]


def check_prefix(prefix: Any) -> None:
    """Refuse a prefix that cannot begin the names of tools.

    Raises:
        DefinitionError: It has other characters than names.
    """
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise DefinitionError(
            "`prefix` must consist of letters, digits, `_` and `-`, as in 'sales_', not "
            f"{prefix!r}."
        )


def find_marked_methods(owner: type) -> dict[str, ToolOptions]:
    """Return the methods of a class that ``@mcp_tool`` marks, those of base classes first.

    An overriding method counts only if it is marked itself. Properties are not read.
    """
    methods: dict[str, ToolOptions] = {}
    for base in reversed(owner.__mro__):
        for name, value in vars(base).items():
            static = type(value) in (staticmethod, classmethod)
            options = read_own_mark(value) or (read_own_mark(value.__func__) if static else None)
            if options is None:
                methods.pop(name, None)
            else:
                methods[name] = options
    return methods


def read_class_mark(owner: Any) -> ClassOfTools | None:
    """Return the mark of ``@mcp_tools`` on this class itself, not on a base class."""
    mark = vars(owner).get(CLASS_MARK) if isinstance(owner, type) else None
    return mark if type(mark) is ClassOfTools else None


def find_classes_of_tools(values: Iterable[tuple[str, Any]]) -> list[str]:
    """Return the names of a namespace's classes under ``@mcp_tools``."""
    # Not `isinstance`: a lazy proxy would load.
    names = {
        id(value): name
        for name, value in reversed(tuple(values))
        if issubclass(type(value), type) and read_class_mark(value) is not None
    }
    return list(reversed(names.values()))


def find_decorated(variables: Mapping[str, Any]) -> list[str]:
    """Return the names of a namespace's decorated functions and classes, one for each."""
    functions: dict[int, str] = {}
    for name, function in find_marked(tuple(variables.items())):
        functions.setdefault(id(function), name)
    return [*functions.values(), *find_classes_of_tools(variables.items())]


def mark_class(owner: type, prefix: str) -> ClassOfTools:
    """Create the single object of a class, and store it on the class.

    Raises:
        DefinitionError: The class cannot be called without arguments, or has no marked methods.
    """
    __tracebackhide__ = True
    name = owner.__name__
    if not find_marked_methods(owner):
        raise DefinitionError(
            f"`{name}` has no tools: add `@mcp_tool` above each method that should become one."
        )
    if inspect.isabstract(owner):
        raise DefinitionError(
            f"`{name}` is abstract: decorate a class that defines all its methods."
        )
    _check_no_arguments(owner)
    mark = ClassOfTools(owner(), prefix)
    try:
        setattr(owner, CLASS_MARK, mark)
        setattr(owner, INSTANCE, mark.instance)
    except (AttributeError, TypeError):
        raise DefinitionError(
            f"`{name}` does not allow new attributes, so it cannot be decorated: create an "
            "object of it, and write `%mcp_tool` with the object's name."
        ) from None
    return mark


def _check_no_arguments(owner: type) -> None:
    name = owner.__name__
    try:
        signature = inspect.signature(owner)
    except (TypeError, ValueError):
        return  # not written in Python: the call will show whether it needs arguments
    try:
        signature.bind()
    except TypeError as error:
        variable = name.lower()
        raise DefinitionError(
            f"`{name}` needs arguments ({error}), but `@mcp_tools` creates the object without any: "
            "remove the decorator, create the object, "
            f"`{variable} = {name}(...)`, and write `%mcp_tool {variable}`."
        ) from None


def find_owner(value: Any, word: str) -> tuple[Any, str]:
    """Return the object with marked methods that a value is or holds, if any, and its prefix.

    Args:
        value: An object, or a class under ``@mcp_tools``.
        word: Its name in messages.

    Raises:
        DefinitionError: It is a class with marked methods, but without ``@mcp_tools``.
    """
    mark = read_class_mark(value)
    if mark is not None:
        return mark.instance, mark.prefix
    if issubclass(type(value), type):
        if find_marked_methods(value):
            raise DefinitionError(
                f"`{word}` is a class with tools: add `@mcp_tools` above it, or create an object, "
                f"`{word.lower()} = {word}(...)`, and write `%mcp_tool {word.lower()}`."
            )
        return None, ""
    return (value, "") if find_marked_methods(type(value)) else (None, "")


def _get_variable(word: str) -> str:
    return word.partition(".")[0]


def _look_up(word: str, namespace: Mapping[str, Any]) -> Any:
    variable, *path = word.split(".")
    if variable not in namespace:
        names = [
            name
            for name, value in namespace.items()
            if not (name.startswith("_") or hasattr(builtins, name))
            and (path or callable(value) or find_marked_methods(type(value)))
        ]
        close = suggest(variable, names)
        hint = f" Did you mean `{close}`?" if close else ""
        raise DefinitionError(
            f"`{variable}` is not defined in this notebook; run the cell that defines "
            f"{'or imports ' if path else ''}it.{hint}"
        )
    value, so_far = namespace[variable], variable
    for name in path:
        try:
            value = getattr(value, name)
        except AttributeError:
            raise DefinitionError(
                f"`{so_far}` has no attribute `{name}`: `dir({so_far})` lists what it has."
            ) from None
        except Exception as error:
            raise DefinitionError(f"`{so_far}.{name}` fails: {describe_error(error)}.") from error
        so_far = f"{so_far}.{name}"
    return value
