"""Reads the parameters and the return annotation of any callable, and binds arguments to them.

Runs in the user's kernel, at definition, on any thread; `Binding.bind` wherever a call runs. Pure.
Partials, methods, wrappers, objects with ``__call__`` and classes are unwrapped to the function
behind them.
"""

import ast
import functools
import inspect
import linecache
import sys
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpecArgs,
    ParamSpecKwargs,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
import typing_extensions
from msgspec import Struct

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.libraries import find_library_folder
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.annotations import (
    UNPACK,
    resolve_hint,
    resolve_known_names,
    translate_hint,
)
from mcp_notebook.kernel.schemas.parameters.markers import is_hidden

NO_DEFAULT: Any = object()
"""Stands for no default, and for no type hint."""


SeenAs: TypeAlias = Literal["argument", "injected", "hidden", "bound"]


class Omitted(Enum):
    """The default of an optional key of ``**kwargs: Unpack[...]``: it is left out of the call."""

    OMITTED = "omitted"


class HintedParameter(Struct, frozen=True):
    """A parameter of the signature."""

    name: str
    hint: Any
    """Resolved; `NO_DEFAULT` for a parameter without one."""
    default: Any
    """`NO_DEFAULT` for a parameter without one."""
    seen_as: SeenAs
    """Whether clients see it, or why not: it gets the context, its default, or an object."""
    unknown_names: tuple[str, ...] = ()
    """Names in its type hint that its module does not define; they count as `Any`."""
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    """As in its signature."""


def read_parameters(
    function: Callable[..., Any], name: str, *, hidden_types: tuple[type, ...] = ()
) -> list[HintedParameter]:
    """Return the parameters of a callable, without ``**kwargs`` and those bound by a partial.

    ``*args`` becomes a list.

    Args:
        function: Any callable.
        name: What messages call it.
        hidden_types: Parameters annotated with one of these are not for clients.

    Raises:
        DefinitionError: It has no usable signature, or a type hint cannot be read.
    """
    plain = _unwrap(function)
    return [
        *(
            _read_parameter(item, plain, name, hidden_types)
            for item in _list_parameters(function, name)
        ),
        *_read_typed_keywords(function),
    ]


def _read_typed_keywords(function: Callable[..., Any]) -> list[HintedParameter]:
    """Return the keys of the TypedDict in ``**kwargs: Unpack[...]`` as parameters."""
    item = _find_keywords(function)
    kind = None if item is None else _find_typed_dict(item, function)
    if kind is None:
        return []
    hints = get_type_hints(kind, include_extras=True)
    return [
        HintedParameter(
            key,
            translate_hint(_strip_presence(hint)),
            NO_DEFAULT if key in kind.__required_keys__ else Omitted.OMITTED,
            "argument",
            kind=inspect.Parameter.KEYWORD_ONLY,
        )
        for key, hint in hints.items()
    ]


def _find_keywords(function: Callable[..., Any]) -> inspect.Parameter | None:
    """Return the parameter of a callable that takes any keywords."""
    parameters = inspect_parameters(function)
    return next((item for item in parameters if item.kind is item.VAR_KEYWORD), None)


def _find_typed_dict(item: inspect.Parameter, function: Callable[..., Any]) -> Any:
    """Return the TypedDict of a ``**kwargs`` parameter; None if it has none."""
    try:
        hint = resolve_known_names(item.annotation, find_callable_namespace(function))[0]
    except Exception:  # noqa: BLE001 - the author's expression
        return None
    arguments = get_args(hint) if get_origin(hint) in UNPACK else ()
    return arguments[0] if arguments and typing_extensions.is_typeddict(arguments[0]) else None


def _strip_presence(hint: Any) -> Any:
    """Return the type of a TypedDict's key without `Required`, `NotRequired` and `ReadOnly`."""
    words = (typing_extensions.Required, typing_extensions.NotRequired, typing_extensions.ReadOnly)
    while get_origin(hint) in words:
        (hint,) = get_args(hint)
    return hint


def _read_parameter(
    item: inspect.Parameter, plain: Callable[..., Any], name: str, hidden_types: tuple[type, ...]
) -> HintedParameter:
    hint: Any = NO_DEFAULT
    unknown: tuple[str, ...] = ()
    if item.annotation is not item.empty:
        hint, unknown = _read_hint(item, plain, name)
    if item.kind is item.VAR_POSITIONAL:
        values: Any = list if hint is NO_DEFAULT else list[hint]
        return HintedParameter(item.name, values, (), "argument", unknown, item.kind)
    default = NO_DEFAULT if item.default is item.empty else item.default
    if _is_injected(hint, hidden_types):
        return HintedParameter(item.name, hint, default, "injected", (), item.kind)
    if not is_hidden(hint):
        return HintedParameter(item.name, hint, default, "argument", unknown, item.kind)
    if default is NO_DEFAULT:
        raise DefinitionError(
            f"`{name}`: the parameter `{item.name}` is `Hidden`, so no client can give it a value: "
            f"give it a default, `{item.name}: Annotated[..., Hidden] = ...`."
        )
    return HintedParameter(item.name, hint, default, "hidden", (), item.kind)


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
    annotation = read_signature(function).return_annotation
    if annotation is NO_ANNOTATION:
        return annotation
    return resolve_hint(annotation, find_namespace(plain))


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
        parameters = inspect_parameters(function)
    except (TypeError, ValueError):
        raise DefinitionError(
            f"`{name}` has no signature (it is not written in Python): wrap it in a function, "
            "`def my_tool(...): return ...`."
        ) from None
    free = [item for item in parameters if item.name not in fixed]
    _refuse_lost_parameters(free, name)
    if not _read_typed_keywords(function):
        _check_open(free, name)
    return [item for item in free if item.kind is not item.VAR_KEYWORD]


def find_open_keywords(function: Callable[..., Any]) -> str | None:
    """Return the name of a callable's untyped ``**kwargs``, which clients do not see."""
    item = _find_keywords(function)
    return None if item is None or _read_typed_keywords(function) else item.name


def list_fixed_parameters(function: Callable[..., Any]) -> Iterable[str]:
    """Return the names of the parameters that a partial has bound."""
    if not isinstance(function, functools.partial):
        return ()
    parameters = read_signature(function.func).parameters
    return (*function.keywords, *list(parameters)[: len(function.args)])


def _refuse_lost_parameters(parameters: Sequence[inspect.Parameter], name: str) -> None:
    """Refuse a decorator's wrapper that hides the parameters of its function."""
    for item in parameters:
        text = item.annotation if isinstance(item.annotation, str) else ""
        if isinstance(item.annotation, ParamSpecArgs | ParamSpecKwargs) or (
            item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
            and text.endswith((".args", ".kwargs"))
        ):
            raise DefinitionError(
                f"`{name}`: a decorator hides its parameters behind `{item.name}`: write "
                "`@functools.wraps(function)` above the decorator's inner function. If that adds "
                "or removes parameters, set its `__signature__` to what callers pass."
            )


def _check_open(parameters: Sequence[inspect.Parameter], name: str) -> None:
    """Refuse a function that declares nothing but ``**kwargs``, also after an untyped ``*args``."""
    last = parameters[-1] if parameters else None
    if last is None or last.kind is not last.VAR_KEYWORD or any(map(_is_known, parameters[:-1])):
        return
    raise DefinitionError(
        f"`{name}`: clients cannot see what `**{last.name}` accepts: give each argument a "
        f"parameter of its own, take one `{last.name}: dict`, or give the schema, "
        "`registry.add(Tool(..., input_schema={...}))`. (A decorator needs `functools.wraps`.)"
    )


def _is_known(item: inspect.Parameter) -> bool:
    return item.kind is not item.VAR_POSITIONAL or item.annotation is not item.empty


def _read_hint(
    item: inspect.Parameter, plain: Callable[..., Any], name: str
) -> tuple[Any, tuple[str, ...]]:
    """Return a parameter's type hint, and the names in it that are not defined."""
    namespace = find_namespace(plain)
    try:
        return resolve_hint(item.annotation, namespace), ()
    except NameError as error:
        if not is_notebook(namespace):  # names imported for type checkers only; no cell can help
            return resolve_known_names(item.annotation, namespace)
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


def find_namespace(plain: Callable[..., Any]) -> dict[str, Any]:
    """Return the globals that the type hints of a plain function or class are written for."""
    # A class's parameters stand in its constructor; the builtin ones have no globals.
    origin = plain.__init__ if inspect.isclass(plain) else plain
    namespace: dict[str, Any] = getattr(origin, "__globals__", {})
    return namespace


def read_source(function: Callable[..., Any]) -> ast.Module:
    """Return the code of the function behind any callable; empty if it is not known.

    Nor is it if a wrapper around that function passes on other arguments than it gets.
    """
    return ast.Module([], []) if changes_arguments(function) else _read_code(_unwrap(function))


def changes_arguments(function: Callable[..., Any]) -> bool:
    """Return whether a wrapper around a function may pass on other arguments than it gets."""
    outer = getattr(function, "func", function)  # of a partial
    while isinstance(outer, types.FunctionType) and "__wrapped__" in vars(outer):
        if not _passes_on(outer):
            return True
        outer = vars(outer)["__wrapped__"]
    return False


def _read_code(function: Callable[..., Any]) -> ast.Module:
    code: Any = getattr(function, "__code__", None)
    try:
        # Not `inspect.getsource`, which looks through all modules.
        linecache.checkcache(code.co_filename)
        lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
        is_cell = lines[0].startswith("%%")
        block = lines[1:] if is_cell else inspect.getblock(lines)
        tree = ast.parse(textwrap.dedent("".join(block)))
    except Exception:  # noqa: BLE001 - it is no Python function, or its file has changed
        return ast.Module([], [])
    found = is_cell or getattr(tree.body[0], "name", code.co_name) == code.co_name
    return tree if found else ast.Module([], [])


def _passes_on(wrapper: types.FunctionType) -> bool:
    """Return whether a decorator's inner function calls its own with just what it gets."""
    nodes = list(ast.walk(_read_code(wrapper)))
    own = sorted(node.arg for node in nodes if isinstance(node, ast.arg))
    changed = {
        node.id if isinstance(node, ast.Name) else ast.unparse(getattr(node, "value", node))
        for node in nodes
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
        or getattr(node, "attr", None) in ("pop", "setdefault", "update")
    }
    names = set()
    for name, cell in zip(wrapper.__code__.co_freevars, wrapper.__closure__ or (), strict=True):
        with suppress(ValueError):  # it is empty
            if cell.cell_contents is vars(wrapper)["__wrapped__"]:
                names.add(name)
    calls = [
        sorted(map(_find_passed, [*node.args, *node.keywords]))
        for node in nodes
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in names
    ]
    return changed.isdisjoint(own) and bool(calls) and all(call == own for call in calls)


def _find_passed(argument: ast.AST) -> str:
    """Return the name that an argument passes on; "" if it is another value."""
    match argument:
        case ast.Name(id=name) | ast.Starred(value=ast.Name(id=name)):
            return name
        case ast.keyword(arg=word, value=ast.Name(id=name)) if word in (None, name):
            return name
    return ""


def find_callable_namespace(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the globals of the function behind any callable."""
    return find_namespace(_unwrap(function))


def is_notebook(namespace: dict[str, Any]) -> bool:
    """Return whether these are the variables of the notebook."""
    return namespace.get("__name__") == "__main__"


def find_variables(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the variables of the notebook that makes a callable a tool."""
    namespace = find_callable_namespace(function)
    return namespace if is_notebook(namespace) else vars(sys.modules["__main__"])


def is_library_code(function: Callable[..., Any]) -> bool:
    """Return whether a callable belongs to an installed library."""
    namespace = find_namespace(_unwrap(function))
    path = namespace.get("__file__")
    return not namespace or (isinstance(path, str) and find_library_folder(path) is not None)


def _is_injected(hint: Any, hidden_types: tuple[type, ...]) -> bool:
    """Return whether a hint is one of these types, also if optional or annotated."""
    if get_origin(hint) is Annotated:
        return _is_injected(get_args(hint)[0], hidden_types)
    if get_origin(hint) in (Union, types.UnionType):
        options = [item for item in get_args(hint) if item is not type(None)]
        return len(options) == 1 and _is_injected(options[0], hidden_types)
    return inspect.isclass(hint) and issubclass(hint, hidden_types)


def format_hint(annotation: Any) -> str:
    """Return a type hint approximately as its author wrote it."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if isinstance(annotation, str):
        return repr(annotation)
    return f"`{inspect.formatannotation(annotation)}`"


# -- how its arguments reach it --------------------------------------------------------------------


class Binding(Struct, frozen=True, dict=True):
    """The parameters that a function takes by position; all others are passed by name."""

    positional: tuple[str, ...] = ()
    """Parameters, in order."""
    rest: str | None = None
    """The name of ``*args``, if it has one."""
    defaults: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The defaults, by parameter."""

    @functools.cached_property
    def is_by_name(self) -> bool:
        """Whether all parameters are passed by name, as for nearly all functions."""
        return not self.positional and self.rest is None

    def bind(
        self, function: Callable[..., Any], arguments: dict[str, Any]
    ) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return a partial with the positional arguments, and the keyword arguments.

        Args:
            function: The function.
            arguments: All its arguments by name.
        """
        by_name = dict(arguments)
        rest = () if self.rest is None else by_name.pop(self.rest, ())
        by_position = []
        for name in self.positional:
            if name not in by_name and name not in self.defaults:
                break  # Python says what is missing
            by_position.append(by_name.pop(name) if name in by_name else self.defaults[name])
        return functools.partial(function, *by_position, *rest), by_name


def read_binding(function: Callable[..., Any], *, offers_rest: bool = True) -> Binding:
    """Return how a callable takes its arguments.

    Args:
        function: Any callable; without a signature, it counts as taking names.
        offers_rest: Whether clients can pass ``*args``.
    """
    try:
        parameters = inspect_parameters(function)
        # What is called may be a wrapper, with other parameters than the function it stands for.
        called = inspect_parameters(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return Binding()
    rest = [item.name for item in parameters if item.kind is item.VAR_POSITIONAL]
    takes_positions = any(item.kind is item.VAR_POSITIONAL for item in called)
    positional = [
        item
        for item in parameters
        if item.kind is item.POSITIONAL_ONLY
        or (item.kind is item.POSITIONAL_OR_KEYWORD and takes_positions)
    ]
    return Binding(
        tuple(item.name for item in positional),
        rest[0] if rest and offers_rest else None,
        {item.name: item.default for item in positional if item.default is not item.empty},
    )


def read_signature(
    function: Callable[..., Any], *, follow_wrapped: bool = True
) -> inspect.Signature:
    """Return the signature of a callable; undefined names in its annotations raise no error yet."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format  # noqa: PLC0415 - as late as Python reads annotations

        lazy = Format.FORWARDREF
        return inspect.signature(function, follow_wrapped=follow_wrapped, annotation_format=lazy)
    return inspect.signature(function, follow_wrapped=follow_wrapped)


def inspect_parameters(
    function: Callable[..., Any], *, follow_wrapped: bool = True
) -> Sequence[inspect.Parameter]:
    """Return the parameters of a callable without those that a partial has bound by position.

    Raises:
        TypeError: It is not written in Python, and has no signature.
        ValueError: As above.
    """
    if isinstance(function, functools.partial):
        # A copy: `update_wrapper` makes `inspect` look through the partial, at what it has fixed.
        function = functools.partial(function.func, *function.args, **function.keywords)
    signature = read_signature(function, follow_wrapped=follow_wrapped)
    parameters = list(signature.parameters.values())
    if follow_wrapped and _is_single_dispatch_method(function):
        return parameters[1:]  # `self`: its wrapper is bound, and does not say so
    return parameters


def _is_single_dispatch_method(function: Any) -> bool:
    if type(function).__name__ == "_singledispatchmethod_get":  # since Python 3.14
        return True
    code = getattr(function, "__code__", None)
    return getattr(code, "co_qualname", "").startswith("singledispatchmethod.")


# -- functions whose input schema is written by hand -----------------------------------------------


def read_handler(
    function: Callable[..., Any], name: str, *, hidden_types: tuple[type, ...] = ()
) -> tuple[list[HintedParameter], bool]:
    """Read the named parameters of a function; without a signature, it counts as taking any.

    Args:
        function: Any callable.
        name: What messages call it.
        hidden_types: Parameters annotated with one of these are not for clients.

    Returns:
        The parameters, and whether it takes any other names, too.
    """
    try:
        parameters = inspect_parameters(function)
    except (TypeError, ValueError):
        return [], True
    read = []
    for item in parameters:
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD):
            continue
        hint = _read_hint_or_any(item, _unwrap(function), name)
        default = NO_DEFAULT if item.default is item.empty else item.default
        is_injected = _is_injected(hint, hidden_types)
        seen_as: SeenAs = "injected" if is_injected else "hidden" if is_hidden(hint) else "argument"
        read.append(HintedParameter(item.name, hint, default, seen_as))
    return read, any(item.kind is item.VAR_KEYWORD for item in parameters)


def _read_hint_or_any(item: inspect.Parameter, plain: Callable[..., Any], name: str) -> Any:
    try:
        return Any if item.annotation is item.empty else _read_hint(item, plain, name)[0]
    except DefinitionError:
        return Any  # clients get the author's schema, not the hint
