"""What a callable takes: through partials, methods, wrappers, classes and callable objects."""

import functools
from typing import Annotated

import pytest

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.parameters.markers import Hidden
from mcp_notebook.kernel.schemas.parameters.parameters import NO_DEFAULT
from mcp_notebook.kernel.schemas.parameters.signatures import (
    NO_ANNOTATION,
    find_docstring,
    find_name,
    format_hint,
    list_fixed_parameters,
    read_handler,
    read_parameters,
    read_return_annotation,
)


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
        (lambda *a: a, "`*a`"),
        (lambda **a: a, "`**a`"),
        (min, "does not tell its parameters"),
    ],
)
def test_a_callable_that_does_not_say_what_it_takes_is_refused(function, said):
    with pytest.raises(DefinitionError) as refused:
        read_parameters(function, "f")
    assert said in str(refused.value)


def test_a_handler_may_take_anything_or_only_its_names():
    def closed(a, b=1, *, ctx: Marker, c: Annotated[int, Hidden] = 2):
        """Closed."""

    handler = read_handler(closed, "f", hidden_types=(Marker,))
    assert (handler.description, handler.required_names) == ("Closed.", ("a",))
    assert (handler.injected, handler.hidden) == (("ctx",), ("c",))
    assert handler.argument_names == {"a", "b"}
    assert read_handler(lambda **anything: anything, "f").argument_names is None
    assert read_handler(min, "f").argument_names is None


def test_what_a_partial_has_fixed_is_listed():
    assert list(list_fixed_parameters(functools.partial(plain, 1, b="y"))) == ["b", "a"]
    assert list(list_fixed_parameters(plain)) == []


def test_a_hint_is_written_as_its_author_wrote_it():
    assert format_hint(int) == "`int`"
    assert format_hint("City") == "'City'"
    assert format_hint(Annotated[list[int], "n"]) == "`list[int]`"
