"""What a callable takes and returns, as its signature and its annotations say.

Runs in the user's kernel, at definition, on any thread. Pure. Whatever can be called is looked
through to the function behind it: partials, methods, wrappers, objects with ``__call__``, classes.
"""

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.annotations import resolve_hint
from mcp_notebook.kernel.schemas.docstrings import parse_docstring
from mcp_notebook.kernel.schemas.markers import is_hidden
from mcp_notebook.kernel.schemas.parameters import NO_DEFAULT


@dataclass(frozen=True)
class HintedParameter:
    """A parameter as it stands in the signature."""

    name: str
    hint: Any
    """Resolved; `NO_DEFAULT` for a parameter without one."""
    default: Any
    """`NO_DEFAULT` for a parameter without one."""
    seen_as: Literal["argument", "injected", "hidden"]
    """Whether clients see it, or why not."""


def read_parameters(
    function: Callable[..., Any], name: str, *, hidden_types: tuple[type, ...] = ()
) -> list[HintedParameter]:
    """Return all parameters of a callable, but for those that a partial has given values.

    Args:
        function: Any callable.
        name: What messages call it.
        hidden_types: Parameters annotated with one of these are not for clients.

    Raises:
        DefinitionError: One of them cannot be given by name, or its type hint cannot be read.
    """
    plain = _unwrap(function)
    return [
        _read_parameter(item, plain, name, hidden_types)
        for item in _list_parameters(function, name)
    ]


def _read_parameter(
    item: inspect.Parameter, plain: Callable[..., Any], name: str, hidden_types: tuple[type, ...]
) -> HintedParameter:
    hint = NO_DEFAULT if item.annotation is item.empty else _read_hint(item, plain, name)
    default = NO_DEFAULT if item.default is item.empty else item.default
    if _is_injected(hint, hidden_types):
        return HintedParameter(item.name, hint, default, "injected")
    if not is_hidden(hint):
        return HintedParameter(item.name, hint, default, "argument")
    if default is NO_DEFAULT:
        raise DefinitionError(
            f"`{name}`: the parameter `{item.name}` is `Hidden`, so no client can give it a value: "
            f"give it a default, `{item.name}: Annotated[..., Hidden] = ...`."
        )
    return HintedParameter(item.name, hint, default, "hidden")


NO_ANNOTATION: Any = inspect.Signature.empty
"""Stands for no return annotation."""


def read_return_annotation(function: Callable[..., Any]) -> Any:
    """Return the return annotation of a function, or `NO_ANNOTATION`.

    Raises:
        Exception: Whatever the author's expression raises; ``NameError`` for an unknown name.
    """
    plain = _unwrap(function)
    if inspect.isclass(plain):
        return NO_ANNOTATION
    annotation = inspect.signature(function).return_annotation
    if annotation is NO_ANNOTATION:
        return annotation
    return resolve_hint(annotation, getattr(plain, "__globals__", {}))


@dataclass(frozen=True)
class Handler:
    """The parameters of a function whose input schema the author wrote by hand."""

    description: str
    """As `FunctionSchema.description`."""
    injected: tuple[str, ...]
    """Parameters that get the `Context`."""
    hidden: tuple[str, ...]
    """Parameters that clients cannot set."""
    required_names: tuple[str, ...]
    """Parameters that have no default."""
    argument_names: frozenset[str] | None
    """All names that clients can pass; None: any."""


def read_handler(
    function: Callable[..., Any], name: str, *, hidden_types: tuple[type, ...] = ()
) -> Handler:
    """Read the parameters of a function; without a signature, it counts as taking any.

    Args:
        function: Any callable.
        name: What messages call it.
        hidden_types: Parameters annotated with one of these are not for clients.

    Raises:
        DefinitionError: A parameter cannot be passed by name.
    """
    plain = _unwrap(function)
    description = parse_docstring(find_docstring(function)).description
    try:
        parameters = _inspect_parameters(function)
    except (TypeError, ValueError):
        return Handler(description, (), (), (), None)
    visible: list[inspect.Parameter] = []
    injected: list[inspect.Parameter] = []
    hidden: list[inspect.Parameter] = []
    for item in parameters:
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD):
            continue
        if item.kind is item.POSITIONAL_ONLY:
            if item.default is item.empty:
                _check_kind(item, name)
            continue  # it keeps its default
        hint = Any if item.annotation is item.empty else _read_hint_or_any(item, plain, name)
        if _is_injected(hint, hidden_types):
            injected.append(item)
        else:
            (hidden if is_hidden(hint) else visible).append(item)
    is_open = any(item.kind is item.VAR_KEYWORD for item in parameters)
    return Handler(
        description,
        tuple(item.name for item in injected),
        tuple(item.name for item in hidden),
        tuple(item.name for item in (*visible, *hidden) if item.default is item.empty),
        None if is_open else frozenset(item.name for item in visible),
    )


def _read_hint_or_any(item: inspect.Parameter, plain: Callable[..., Any], name: str) -> Any:
    try:
        return _read_hint(item, plain, name)
    except DefinitionError:
        return Any  # clients get the author's schema, whatever the hint means


def _unwrap(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function or class behind partials, methods, wrappers and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif inspect.isclass(function):
            return function
        elif "__wrapped__" in getattr(function, "__dict__", {}):
            function = function.__wrapped__  # type: ignore[attr-defined]
        elif inspect.isroutine(function):
            return function
        else:
            function = type(function).__call__


def find_name(function: Callable[..., Any]) -> str:
    """Return the name that a callable has in its source."""
    name = getattr(_unwrap(function), "__name__", None)
    return name if isinstance(name, str) and name else type(function).__name__


def find_docstring(function: Callable[..., Any]) -> str | None:
    """Return the docstring of a callable, of the function that it calls, or of its class."""
    plain = _unwrap(function)
    partial_doc = vars(function).get("__doc__") if isinstance(function, functools.partial) else None
    doc = partial_doc or getattr(plain, "__doc__", None)
    if not doc and getattr(plain, "__name__", None) == "__call__":
        doc = type(function).__doc__
    return doc if isinstance(doc, str) else None


def _list_parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    fixed = function.keywords if isinstance(function, functools.partial) else {}
    try:
        parameters = _inspect_parameters(function)
    except (TypeError, ValueError):
        raise DefinitionError(
            f"`{name}` does not tell its parameters (it is not written in Python): wrap it in a "
            "function, `def my_tool(...): return ...`."
        ) from None
    free = [item for item in parameters if item.name not in fixed]
    for item in free:
        _check_kind(item, name)
    return free


def _inspect_parameters(function: Callable[..., Any]) -> Sequence[inspect.Parameter]:
    if isinstance(function, functools.partial):
        # A copy: `update_wrapper` makes `inspect` look through the partial, at what it has fixed.
        function = functools.partial(function.func, *function.args, **function.keywords)
    return list(inspect.signature(function).parameters.values())


def list_fixed_parameters(function: Callable[..., Any]) -> Iterable[str]:
    """Return the parameters that a partial has given values."""
    if not isinstance(function, functools.partial):
        return ()
    parameters = inspect.signature(function.func).parameters
    return (*function.keywords, *list(parameters)[: len(function.args)])


def _check_kind(item: inspect.Parameter, name: str) -> None:
    if item.kind is item.POSITIONAL_ONLY:
        raise DefinitionError(
            f"`{name}`: the parameter `{item.name}` is positional-only, but clients pass arguments "
            "by name: remove the `/` from the signature, or wrap it in a function without it."
        )
    if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD):
        stars, kind = ("*", "list") if item.kind is item.VAR_POSITIONAL else ("**", "dict")
        raise DefinitionError(
            f"`{name}`: clients cannot be told what `{stars}{item.name}` takes: give each argument "
            f"a parameter of its own, take one `{item.name}: {kind}`, or say what it takes, "
            "`registry.add(Tool(..., input_schema={...}))`."
        )


def _read_hint(item: inspect.Parameter, plain: Callable[..., Any], name: str) -> Any:
    # A class's parameters stand in its constructor; the builtin ones have no globals.
    origin = plain.__init__ if inspect.isclass(plain) else plain
    try:
        return resolve_hint(item.annotation, getattr(origin, "__globals__", {}))
    except NameError as error:
        raise DefinitionError(
            f"`{name}`: the type hint of `{item.name}` uses `{error.name}`, which is not defined "
            "yet: run the cell that defines or imports it first."
        ) from None
    except Exception as error:
        # A hint that is a string is code of the author's.
        raise DefinitionError(
            f"`{name}`: the type hint of `{item.name}`, {format_hint(item.annotation)}, cannot be "
            f"read ({describe_error(error)}): correct it."
        ) from error


def _is_injected(hint: Any, hidden_types: tuple[type, ...]) -> bool:
    """Tell whether a hint is one of these types, also if optional or annotated."""
    if get_origin(hint) is Annotated:
        return _is_injected(get_args(hint)[0], hidden_types)
    if get_origin(hint) in (Union, types.UnionType):
        options = [item for item in get_args(hint) if item is not type(None)]
        return len(options) == 1 and _is_injected(options[0], hidden_types)
    return inspect.isclass(hint) and issubclass(hint, hidden_types)


def format_hint(annotation: Any) -> str:
    """Return a type hint as its author wrote it, about."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if isinstance(annotation, str):
        return repr(annotation)
    return f"`{inspect.formatannotation(annotation)}`"
