"""What a callable takes: through partials, methods, wrappers, classes and callable objects."""

import functools
import math
from typing import Annotated

import pytest

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.parameters.callables import (
    NO_ANNOTATION,
    Binding,
    find_docstring,
    find_name,
    format_hint,
    list_fixed_parameters,
    read_binding,
    read_handler,
    read_parameters,
    read_return_annotation,
)
from mcp_notebook.kernel.schemas.parameters.markers import Hidden
from mcp_notebook.kernel.schemas.parameters.pydantic_validator import NO_DEFAULT
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema


class Marker:
    """Stands for the context."""


def plain(a: int, b: "str" = "x") -> "list[int]":
    """Plain."""


class Callable:
    """Of the class."""

    def __call__(self, a: int): ...

    def method(self, a: int):
        """Method."""


@functools.wraps(plain)
def wrapper(*args, **kwargs): ...


@pytest.mark.parametrize(
    ("function", "names", "name", "doc"),
    [
        (plain, ["a", "b"], "plain", "Plain."),
        (wrapper, ["a", "b"], "plain", "Plain."),
        (functools.partial(plain, b="y"), ["a"], "plain", "Plain."),
        (functools.partial(plain, 1), ["b"], "plain", "Plain."),
        (Callable().method, ["a"], "method", "Method."),
        (Callable(), ["a"], "__call__", "Of the class."),
    ],
)
def test_whatever_can_be_called_is_looked_through(function, names, name, doc):
    assert [item.name for item in read_parameters(function, "f")] == names
    assert find_name(function) == name
    assert find_docstring(function) == doc


def test_hints_are_resolved_and_defaults_kept():
    first, second = read_parameters(plain, "f")
    assert (first.hint, first.default) == (int, NO_DEFAULT)
    assert (second.hint, second.default) == (str, "x")
    assert read_return_annotation(plain) == list[int]
    assert read_return_annotation(Callable) is NO_ANNOTATION


def test_parameters_that_clients_do_not_see_are_told_apart():
    def f(a, ctx: Marker | None = None, b: Annotated[int, Hidden] = 1): ...

    kinds = {item.name: item.seen_as for item in read_parameters(f, "f", hidden_types=(Marker,))}
    assert kinds == {"a": "argument", "ctx": "injected", "b": "hidden"}


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda *a, **k: (a, k), "`**k`"),
        (lambda **a: a, "`**a`"),
        (min, "has no signature"),
    ],
)
def test_a_callable_that_does_not_say_what_it_takes_is_refused(function, said):
    with pytest.raises(DefinitionError) as refused:
        read_parameters(function, "f")
    assert said in str(refused.value)


def test_a_handler_may_take_anything_or_only_its_names():
    def closed(a, b=1, *, ctx: Marker, c: Annotated[int, Hidden] = 2): ...

    parameters, is_open = read_handler(closed, "f", hidden_types=(Marker,))
    seen = {"a": "argument", "b": "argument", "ctx": "injected", "c": "hidden"}
    assert ({item.name: item.seen_as for item in parameters}, is_open) == (seen, False)
    assert [item.default for item in parameters] == [NO_DEFAULT, 1, NO_DEFAULT, 2]
    assert read_handler(lambda **anything: anything, "f") == ([], True)
    assert read_handler(min, "f") == ([], True)


def test_what_a_partial_has_fixed_is_listed():
    assert list(list_fixed_parameters(functools.partial(plain, 1, b="y"))) == ["b", "a"]
    assert list(list_fixed_parameters(plain)) == []


def test_a_hint_is_written_as_its_author_wrote_it():
    assert format_hint(int) == "`int`"
    assert format_hint("City") == "'City'"
    assert format_hint(Annotated[list[int], "n"]) == "`list[int]`"


# -- Arguments reach a function as it takes them: by name, or by position. -------------------------


class Context:
    """Stands for a type that clients do not see."""


def called(function, **arguments):
    """Call a function as a call of its tool does."""
    schema = read_function_schema(function, hidden_types=(Context,))
    values = schema.validate(arguments) | dict.fromkeys(schema.injected, "context")
    bound, named = schema.binding.bind(function, values)
    return bound(**named)


def in_order(a: int, b: int = 2, /, c: int = 3, *rest: float, d: int = 4):
    """Take some by position."""
    return a, b, c, rest, d


def with_context(ctx: Context, a: int, /):
    """Take the context by position."""
    return ctx, a


@functools.singledispatch
def area(shape: str | int, scale: float = 1.0):
    """Dispatch by the first argument."""
    return "text", shape, scale


@area.register
def _(shape: int, scale: float = 1.0):
    return "number", shape, scale


class Shapes:
    @functools.singledispatchmethod
    def area(self, shape: str | int):
        """Dispatch by the first argument that is not self."""
        return "text", shape

    @area.register
    def _(self, shape: int):
        return "number", shape


@functools.wraps(in_order)
def by_position_only(*args):
    return args


@pytest.mark.parametrize(
    ("function", "arguments", "value"),
    [
        (in_order, {"a": 1}, (1, 2, 3, (), 4)),
        (in_order, {"a": 1, "c": 5, "d": 6}, (1, 2, 5, (), 6)),
        (in_order, {"a": 1, "rest": [1, 2.5]}, (1, 2, 3, (1.0, 2.5), 4)),
        (functools.partial(in_order, 9), {"b": 1, "rest": [7]}, (9, 1, 3, (7.0,), 4)),
        (with_context, {"a": 1}, ("context", 1)),
        (area, {"shape": 2}, ("number", 2, 1.0)),
        (area, {"shape": "a", "scale": 3}, ("text", "a", 3.0)),
        (Shapes().area, {"shape": 2}, ("number", 2)),
        (math.sqrt, {"x": 9}, 3),
        (lambda *nums: sum(nums), {}, 0),
        (lambda *nums: sum(nums), {"nums": [1, 2.5]}, 3.5),
    ],
)
def test_what_a_function_takes_by_position_it_gets_by_position(function, arguments, value):
    assert called(function, **arguments) == value


def test_a_wrapper_that_takes_positions_gets_them():
    def plain(a: int, b: int = 2):
        """Do."""

    wrapper = functools.wraps(plain)(lambda *args: args)
    assert called(wrapper, a=1) == (1, 2)


def test_a_function_that_takes_names_is_called_itself():
    def plain(a: int, *, b: int = 1):
        """Do."""

    binding = read_binding(plain)
    assert binding == Binding()
    assert binding.is_by_name


def test_keywords_of_any_name_are_left_out_and_the_author_told():
    def f(a: int, **options):
        """Do."""
        return a, options

    assert called(f, a=1) == (1, {})
    [warning] = read_function_schema(f).warnings
    assert warning.startswith("Clients do not see `**options` and cannot use it")
