"""Types that pydantic does not know, or publishes as something else than they take."""

import base64
import collections.abc
import functools
import sys
import typing
from collections.abc import Callable, Collection
from typing import Annotated, Any, Concatenate, NotRequired, ParamSpec, TypedDict, TypeVar, Unpack

import numpy as np
import numpy.typing as npt
import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema
from refusals import refusal_of
from schemas import check_schema
from typing_extensions import TypeAliasType

from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.tools.declared_tool import make_tool

P = ParamSpec("P")
R = TypeVar("R")
SENT = base64.b64encode(b"ab").decode()


def tool_of(hint, *default):
    def f(x):
        """F."""

    f.__annotations__ = {"x": hint}
    f.__defaults__ = default or None
    return make_tool(f)


def take(hint, value):
    """Return what a function with a parameter of this type gets for what a client sends."""
    tool = tool_of(hint)
    Draft202012Validator(tool.info.input_schema).validate({"x": value})
    return tool.schema.validate({"x": value})["x"]


def refusal(function):
    return refusal_of(make_tool, function)


def refusal_of_hint(hint):
    return refusal_of(tool_of, hint)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_bytes_that_can_be_changed_are_sent_like_bytes(kind):
    for hint in (kind, kind | None, Annotated[kind, Field(description="D.")]):
        taken = take(hint, SENT)
        assert type(taken) is kind
        assert taken == b"ab"
    assert tool_of(kind).info.input_schema == tool_of(bytes).info.input_schema
    assert [bytes(item) for item in take(list[kind], [SENT, SENT])] == [b"ab", b"ab"]
    with pytest.raises(InvalidArguments, match="base64"):
        take(kind, "?")
    assert tool_of(kind, kind(b"ab")).schema.validate({}) == {"x": b"ab"}


@pytest.mark.parametrize(
    "kind",
    [
        *(collections.abc.Collection, collections.abc.Container, collections.abc.Reversible),
        *(typing.Collection, typing.Container, typing.Reversible),
    ],
)
def test_an_abstract_collection_is_a_list(kind):
    assert take(kind[int], [1, 2]) == [1, 2]
    assert take(kind[Collection[int]] | None, [[1], []]) == [[1], []]
    assert take(kind, ["a", 1]) == ["a", 1]
    for hint, value in ((kind[int], ["a"]), (kind[int], 1), (kind, "a")):
        with pytest.raises(InvalidArguments, match="allowed: "):
            tool_of(hint).schema.validate({"x": value})
    for default in ((1, 2), [1], frozenset({1}), ()):
        tool = tool_of(kind[int], default)
        assert tool.schema.validate({})["x"] is default
        check_schema(tool.info.input_schema)


def test_what_numpy_takes_for_an_array_is_one():
    for hint in (npt.ArrayLike, npt.ArrayLike | None, Annotated[npt.ArrayLike, Field()]):
        taken = take(hint, [[1, 2], [3, 4]])
        assert isinstance(taken, np.ndarray)
        assert taken.tolist() == [[1, 2], [3, 4]]
    assert take(dict[str, npt.ArrayLike], {"a": [1]})["a"].tolist() == [1]
    with pytest.raises(InvalidArguments, match="array"):
        tool_of(npt.ArrayLike).schema.validate({"x": {"a": 1}})


@pytest.mark.parametrize(
    "hint",
    [type, type[int], type[Any], type[BaseModel], type[int] | None, list[type[int]], npt.DTypeLike],
)
def test_a_class_cannot_be_sent_and_the_author_hears_what_can(hint):
    said = refusal_of_hint(hint)
    assert "a class cannot be sent. Take its name, `Literal['int', 'float']`" in said


def alias_of(hint):
    return TypeAliasType("Alias", hint)


def tree_of(kind):
    """Return an alias that names itself, as `type Tree = ...` does."""
    namespace = {"kind": kind}
    exec("type Tree = dict[str, Tree] | kind", namespace)
    return namespace["Tree"]


def test_a_name_for_a_type_is_that_type():
    for kind in (bytearray, memoryview):
        for hint in (alias_of(kind), alias_of(alias_of(kind) | None), list[alias_of(kind)] | kind):
            assert tool_of(hint).info.input_schema["properties"]["x"]
        assert take(alias_of(kind), SENT) == b"ab"
    assert take(alias_of(Collection[int]), [1]) == [1]
    assert take(alias_of(npt.ArrayLike) | None, [1]).tolist() == [1]
    assert "a class cannot be sent." in refusal_of_hint(alias_of(type[int]) | None)
    assert "a class cannot be sent." in refusal_of_hint(list[alias_of(alias_of(type))])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="has no such statement")
def test_a_name_may_stand_for_a_type_that_contains_it():
    assert take(tree_of(int), {"a": {"b": 1}}) == {"a": {"b": 1}}
    assert "a class cannot be sent." in refusal_of_hint(tree_of(type[int]))
    namespace = {}
    exec("type Pick[T] = type[T] | None", namespace)
    assert "a class cannot be sent." in refusal_of_hint(namespace["Pick"][int])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="has no such statement")
def test_a_name_for_what_is_not_defined_yet_is_told_like_a_hint_of_that():
    source = "type Places = list[Place]\ndef f(x: Places): 'F.'"
    cell, module = {"__name__": "__main__"}, {"__name__": "places"}
    exec(source, cell)
    exec(source, module)
    assert "uses `Place`, which is not defined yet: run the cell" in refusal(cell["f"])
    tool = make_tool(module["f"])
    assert tool.schema.validate({"x": 1}) == {"x": 1}
    assert "`Place`" in str(tool.warnings)


def test_an_author_can_say_how_a_class_is_sent():
    hint = Annotated[
        type[int],
        BeforeValidator({"int": int, "bool": bool}.get),
        WithJsonSchema({"enum": ["int", "bool"]}),
    ]
    assert take(hint, "bool") is bool


# -- **kwargs with a TypedDict ---------------------------------------------------------------------


class Style(TypedDict):
    color: Annotated[str, Field(description="A name.")]
    width: NotRequired[int]


def test_keywords_that_a_typed_dict_describes_are_parameters():
    def plot(year: int, *, size: float = 1, **style: Unpack[Style]):
        """Plot.

        Args:
            year: Of the data.
            width: In pixels.
        """
        return year, size, style

    tool = make_tool(plot)
    schema = tool.info.input_schema
    assert list(schema["properties"]) == ["year", "size", "color", "width"]
    assert schema["required"] == ["year", "color"]
    assert schema["properties"]["color"] == {"type": "string", "description": "A name."}
    assert schema["properties"]["width"] == {"type": "integer", "description": "In pixels."}
    assert tool.warnings == ()
    for arguments in ({"year": 1, "color": "red"}, {"year": 1, "color": "red", "width": 2}):
        values = tool.schema.validate(arguments)
        style = {key: value for key, value in arguments.items() if key != "year"}
        function, named = tool.schema.binding.bind(plot, values)
        assert function(**named) == (1, 1, style)
    with pytest.raises(InvalidArguments, match="width"):
        tool.schema.validate({"year": 1, "color": "red", "width": "wide"})
    with pytest.raises(InvalidArguments, match="colour"):
        tool.schema.validate({"year": 1, "colour": "red"})


def test_a_function_may_take_nothing_else():
    def plot(**style: Unpack[Style]):
        """Plot."""

    assert list(make_tool(plot).info.input_schema["properties"]) == ["color", "width"]


# -- decorators ------------------------------------------------------------------------------------


def with_connection(function: Callable[Concatenate[int, P], R]) -> Callable[P, R]:
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(1, *args, **kwargs)

    return inner


def with_year(function: Callable[P, R]) -> Callable[Concatenate[int, P], R]:
    def inner(year: int, *args: P.args, **kwargs: P.kwargs) -> R:
        """Of a year."""
        return function(*args, **kwargs)

    return inner


def with_text(function: Callable[P, R]) -> Callable[P, R]:
    def inner(*args: "P.args", **kwargs: "P.kwargs") -> R:
        return function(*args, **kwargs)

    return inner


@pytest.mark.parametrize("decorate", [with_connection, with_year, with_text])
def test_a_decorator_that_does_not_say_what_its_function_takes_is_refused(decorate):
    def rain(connection: int, city: str) -> str:
        """Rain."""

    said = refusal(decorate(rain))
    assert "a decorator hides its parameters behind `args`" in said
    assert "`@functools.wraps(function)`" in said
    properties = make_tool(functools.wraps(rain)(decorate(rain))).info.input_schema["properties"]
    assert list(properties) == ["connection", "city"]
