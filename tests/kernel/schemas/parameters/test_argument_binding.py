"""Arguments reach a function as it takes them: by name, or by position."""

import functools
import math

import pytest

from mcp_notebook.kernel.schemas.parameters.argument_binding import Binding, read_binding
from mcp_notebook.kernel.schemas.parameters.input_schema import read_function_schema


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
    assert binding.bind(plain, {"a": 1}) == (plain, {"a": 1})


def test_keywords_of_any_name_are_left_out_and_the_author_told():
    def f(a: int, **options):
        """Do."""
        return a, options

    assert called(f, a=1) == (1, {})
    [warning] = read_function_schema(f).warnings
    assert warning.startswith("Clients are not told of `**options` and cannot use it")
