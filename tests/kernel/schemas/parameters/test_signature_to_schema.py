"""What a function's signature says to clients, and what cannot be said."""

import functools
import importlib
import inspect
import json
import math
import site
import sys
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema
from refusals import refusal_of
from schemas import check_schema

from mcp_notebook.errors import DefinitionError, InvalidArguments
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema
from mcp_notebook.kernel.tools.declared_tool import make_tool


class Context:
    """Stands for a type that clients do not see."""


def properties(function, **options):
    schema = read_function_schema(function, **options).input_schema
    check_schema(schema)
    json.dumps(schema, allow_nan=False)
    return schema["properties"]


def refusal(function):
    return refusal_of(read_function_schema, function)


def notebook(code, **names):
    """Run code as a notebook would, and return its namespace."""
    namespace = {"__name__": "__main__", **names}
    exec(inspect.cleandoc(code), namespace)
    return namespace


# -- what is published -----------------------------------------------------------------------------


def test_a_schema_is_a_closed_object_with_the_parameters_in_order():
    def f(zebra: int, apple: str, mango: float = 1.5):
        """Do."""

    assert read_function_schema(f).input_schema == {
        "type": "object",
        "properties": {
            "zebra": {"type": "integer"},
            "apple": {"type": "string"},
            "mango": {"type": "number", "default": 1.5},
        },
        "required": ["zebra", "apple"],
        "additionalProperties": False,
    }
    assert list(properties(f)) == ["zebra", "apple", "mango"]


def test_a_function_without_parameters_takes_an_empty_object():
    def f():
        """Do."""

    schema = read_function_schema(f)
    assert schema.input_schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    assert schema.validate({}) == {}


def test_the_description_is_the_docstring_without_its_sections():
    def f(n: int):
        """Count things.

        All of them.

        Args:
            n: How many.

        Returns:
            The number.
        """

    assert read_function_schema(f).description == "Count things.\n\nAll of them."
    assert properties(f)["n"] == {"type": "integer", "description": "How many."}


def test_the_most_deliberate_description_of_a_parameter_wins():
    def f(a: Annotated[int, Field(description="field")], b: Annotated[int, "text"], c: int):
        """Do.

        Args:
            a: docstring
            b: docstring
            c: docstring
        """

    described = [item["description"] for item in properties(f).values()]
    assert described == ["field", "text", "docstring"]


def test_the_description_of_a_shared_type_does_not_hide_that_of_the_parameter():
    class Place(BaseModel):
        """Somewhere."""

        lat: float

    def f(start: Place, end: Place):
        """Go.

        Args:
            start: From here.
            end: To there.
        """

    assert properties(f) == {
        "start": {"$ref": "#/$defs/Place", "description": "From here."},
        "end": {"$ref": "#/$defs/Place", "description": "To there."},
    }


def test_a_parameter_of_a_hidden_type_is_injected_not_published():
    class Special(Context):
        pass

    def f(ctx: Context, maybe: Context | None = None, *, mine: Special, n: int = 1):
        """Do."""

    schema = read_function_schema(f, hidden_types=(Context,))
    assert schema.injected == ("ctx", "maybe", "mine")
    assert list(schema.input_schema["properties"]) == ["n"]
    assert schema.validate({}) == {"n": 1}
    with pytest.raises(InvalidArguments, match="ctx: no such parameter"):
        schema.validate({"ctx": 1})


# -- warnings --------------------------------------------------------------------------------------


def test_an_author_is_told_what_clients_will_not_know():
    def f(x, ctx: Context):
        pass

    schema = read_function_schema(f, hidden_types=(Context,))
    assert schema.warnings == ("`f` has no docstring: say what it is for.",)
    assert schema.untyped == ("x",)


def test_a_documented_parameter_that_does_not_exist_is_a_warning():
    def f(city: str):
        """Do.

        Args:
            town: Old name.
            city: Name.
        """

    assert read_function_schema(f).warnings == (
        "The docstring describes `town`, which is not a parameter.",
    )


# -- defaults --------------------------------------------------------------------------------------


@pytest.mark.parametrize("default", [math.nan, math.inf, [1.0, math.nan], object(), "x" * 5000])
def test_a_default_without_a_short_json_form_is_left_out_of_the_schema_only(default):
    def f(a: Any = default):
        """Do."""

    assert properties(f)["a"] == {}
    assert read_function_schema(f).validate({})["a"] is default


def test_none_as_a_default_makes_a_parameter_optional():
    def f(n: Annotated[int, Field(ge=1), "How many."] = None):  # noqa: RUF013
        """Do."""

    assert properties(f)["n"] == {
        "anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}],
        "default": None,
        "description": "How many.",
    }
    schema = read_function_schema(f)
    assert schema.validate({}) == schema.validate({"n": None}) == {"n": None}
    with pytest.raises(InvalidArguments, match="at least 1"):
        schema.validate({"n": 0})


def test_a_field_as_a_default_says_bounds_and_default():
    def f(n: int = Field(5, ge=1, description="How many."), m: int = Field(ge=1)):
        """Do."""

    assert properties(f) == {
        "n": {"type": "integer", "minimum": 1, "default": 5, "description": "How many."},
        "m": {"type": "integer", "minimum": 1},
    }
    schema = read_function_schema(f)
    assert schema.input_schema["required"] == ["m"]
    assert schema.validate({"m": 1}) == {"n": 5, "m": 1}


def test_a_default_that_its_type_hint_refuses_is_an_error():
    def f(n: Annotated[int, Field(ge=1)] = 0):
        """Do."""

    assert refusal(f) == (
        "`f`: the default of `n`, 0, is not what its type hint allows (Input should be greater "
        "than or equal to 1): change one of them."
    )


def test_a_default_with_a_part_that_is_missing_is_an_error():
    class Place(BaseModel):
        lat: float

    def f(other: int, place: Place = {}):  # noqa: B006
        """Do."""

    assert "the default of `place`, {}," in refusal(f)


# -- any name --------------------------------------------------------------------------------------


def test_a_parameter_with_an_alias_is_called_by_it_and_passed_by_its_name():
    def f(from_: Annotated[int, Field(alias="from")], to: Annotated[int, Field(alias="till")] = 9):
        """Do."""

    assert list(properties(f)) == ["from", "till"]
    schema = read_function_schema(f)
    assert schema.validate({"from": 1}) == {"from_": 1, "to": 9}
    with pytest.raises(InvalidArguments, match=r"from: missing; allowed: integer\."):
        schema.validate({})


def test_names_that_models_apis_refuse_have_an_alias_of_their_own_for_clients():
    f = notebook(
        """
        def f(año: int, δ_max=0.5, *, n=1, ñ: bool = True, delta_max=None, Δ=()):
            'Do.\\n\\nArgs:\\n    año: The year.'
        """
    )["f"]
    shown = {name: item.get("description") for name, item in properties(f).items()}
    assert shown == {
        "ano": "año: The year.",
        "delta_max_2": "δ_max",
        "n": None,
        "n_2": "ñ",
        "delta_max": None,
        "Delta": "Δ",
    }
    schema = read_function_schema(f)
    assert schema.aliases == {"año": "ano", "δ_max": "delta_max_2", "ñ": "n_2", "Δ": "Delta"}
    told = "For clients, `año` is `ano`, `δ_max` is `delta_max_2`, `ñ` is `n_2`, `Δ` is `Delta`: "
    assert any(note.startswith(told) for note in make_tool(f).notes)
    values = {"año": 7, "δ_max": 2, "n": 1, "ñ": True, "delta_max": None, "Δ": (3,)}
    assert schema.validate({"ano": "7", "delta_max_2": 2, "Delta": [3]}) == values
    with pytest.raises(InvalidArguments) as refused:
        schema.validate({"año": 7, "n_2": "b"})
    said = str(refused.value)
    assert "ano: missing; allowed: integer." in said
    assert "año: no such parameter; did you mean 'ano'?" in said
    assert "n_2: got 'b' (string)" in said
    assert "δ_max" in read_function_schema(f, is_tool=False).input_schema["properties"]


# -- any callable ----------------------------------------------------------------------------------


def test_the_wrapped_function_says_the_parameters():
    def twice(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return 2 * function(*args, **kwargs)

        return wrapper

    @twice
    @twice
    def f(n: "int"):
        """Do.

        Args:
            n: How many.
        """
        return n

    schema = read_function_schema(f)
    assert schema.description == "Do."
    assert properties(f)["n"] == {"type": "integer", "description": "How many."}
    assert f(**schema.validate({"n": 3})) == 12


def test_methods_and_callable_objects_do_not_show_self():
    class Model:
        """A model."""

        def __call__(self, x: "float"):
            """Predict."""
            return x

        def fit(self, n: int):
            """Fit."""

        @classmethod
        def load(cls, path: str):
            """Load."""

        @staticmethod
        def help(topic: str):
            """Help."""

    model = Model()
    told = {
        read_function_schema(item).description: list(properties(item))
        for item in (model, model.fit, Model.load, model.help)
    }
    assert told == {"Predict.": ["x"], "Fit.": ["n"], "Load.": ["path"], "Help.": ["topic"]}


def test_a_class_is_called_with_what_its_constructor_takes():
    class Shape:
        """A shape."""

        sides: str

        def __init__(self, sides: "int"):
            pass

    assert properties(Shape) == {"sides": {"type": "integer"}}
    assert read_function_schema(Shape).description == "A shape."


# -- annotations as text ---------------------------------------------------------------------------


def test_annotations_are_resolved_in_the_namespace_of_the_function():
    names = notebook(
        """
        from __future__ import annotations
        from enum import Enum

        class Color(Enum):
            RED = "red"

        def f(color: Color, other: list[Color] | None = None):
            'Do.'
        """
    )
    schema = read_function_schema(names["f"])
    assert schema.input_schema["$defs"]["Color"]["enum"] == ["red"]
    assert schema.validate({"color": "red"})["color"] is names["Color"].RED


def test_an_undefined_name_in_an_annotation_is_an_error_that_names_it():
    names = notebook("def f(a: int, city: 'list[City]'): 'Do.'")
    assert refusal(names["f"]) == (
        "`f`: the type hint of `city` uses `City`, which is not defined yet: run the cell that "
        "defines or imports it first."
    )


def test_an_annotation_that_cannot_be_read_is_an_error_that_shows_it():
    names = notebook("def f(city: 'the name'): 'Do.'")
    message = refusal(names["f"])
    assert message.startswith("`f`: the type hint of `city`, 'the name', cannot be read (Syntax")


# -- what cannot be offered ------------------------------------------------------------------------


def test_open_ended_parameters_are_refused():
    def two_stars(**options):
        pass

    assert "`**options` accepts" in refusal(two_stars)
    assert "take one `options: dict`" in refusal(two_stars)


def test_a_function_that_is_not_written_in_python_is_refused_if_it_has_no_signature():
    assert "wrap it in a function" in refusal(type)


@pytest.mark.parametrize(
    ("hint", "named"),
    [
        (pd.Index, "pandas"),
        (np.void, "numpy.void"),
        (list[pd.Period], "list[pandas"),
        (Context, "Context"),
        (int | Context, "Context"),
    ],
)
def test_a_type_without_a_schema_is_refused_with_what_to_do(hint, named):
    def f(a: int, df: hint):
        """Do."""

    message = refusal(f)
    assert message.startswith("`f`: the type hint of `df`, `")
    assert named in message
    assert "`Annotated[..., WithJsonSchema({...})]`" in message
    assert "arbitrary_types_allowed" not in message  # pydantic's advice would not help here


def test_a_pattern_that_cannot_be_compiled_is_refused():
    def f(code: Annotated[str, Field(pattern="(")]):
        """Do."""

    assert "the type hint of `code`, `str`, cannot be expressed" in refusal(f)


def test_a_type_whose_own_code_fails_is_refused_with_its_words():
    class Broken:
        @classmethod
        def __get_pydantic_core_schema__(cls, source, handler):
            raise KeyError("no luck")

    def f(x: Broken):
        """Do."""

    assert "(KeyError: 'no luck')" in refusal(f)


def test_the_way_out_that_is_offered_for_a_type_without_a_schema_works():
    rows = {"type": "array", "items": {"type": "object"}}

    def f(
        raw: Annotated[pd.DataFrame, WithJsonSchema(rows)],
        df: Annotated[pd.DataFrame, BeforeValidator(pd.DataFrame), WithJsonSchema(rows), "Rows."],
        more: Annotated[pd.DataFrame, WithJsonSchema(rows)] = None,
    ):
        """Do."""

    shown = properties(f)
    assert shown["raw"] == rows
    assert shown["df"] == {**rows, "description": "Rows."}
    assert shown["more"]["anyOf"] == [rows, {"type": "null"}]
    valid = read_function_schema(f).validate({"raw": [{"a": 1}], "df": [{"a": 1}]})
    assert valid["raw"] == [{"a": 1}]
    assert isinstance(valid["df"], pd.DataFrame)


# -- validate --------------------------------------------------------------------------------------


def test_an_undefined_name_that_no_cell_can_define_stands_for_any_value():
    names = {"__name__": "library", "Any": Any}
    exec("def f(by: 'Label | None' = None, size: 'int' = 1, how: 'Missing[int]' = 2): 'D.'", names)
    schema = read_function_schema(names["f"])
    assert schema.input_schema["properties"]["by"] == {
        "anyOf": [{}, {"type": "null"}],
        "default": None,
    }
    assert schema.input_schema["properties"]["size"] == {"type": "integer", "default": 1}
    assert schema.validate({"by": ["a"], "how": "x"}) == {"by": ["a"], "size": 1, "how": "x"}
    assert " ".join(schema.warnings) == (
        "Its module does not define `Label`, `Missing`: any value is accepted where a type hint "
        "uses them (of `by`, `how`)."
    )


@pytest.mark.skipif(sys.version_info < (3, 14), reason="before, it is an error of the `def`")
def test_an_undefined_name_in_an_annotation_that_is_read_late_is_named():
    source = "def f(by: list[Label], size: int = 1) -> Frame: 'D.'"
    names = {"__name__": "library"}
    exec(source, names)
    schema = read_function_schema(names["f"])
    assert schema.input_schema["properties"]["by"] == {"type": "array", "items": {}}
    assert "does not define `Label`" in " ".join(schema.warnings)
    names = {"__name__": "__main__"}
    exec(source, names)
    with pytest.raises(DefinitionError, match="the type hint of `by` uses `Label`, which is not"):
        read_function_schema(names["f"])


def test_functions_of_a_library_are_tools_whatever_their_type_hints():
    frame = pd.DataFrame({"a": [1, 2, 3]})
    for function, arguments in (
        (frame.query, {"expr": "a > 1"}),
        (frame.groupby, {"by": "a"}),
        (pd.read_csv, {"filepath_or_buffer": "x.csv"}),
    ):
        schema = read_function_schema(function)
        check_schema(schema.input_schema)
        assert arguments.items() <= schema.validate(arguments).items()
        assert len(schema.warnings) <= 5, schema.warnings
    assert frame.query(**read_function_schema(frame.query).validate({"expr": "a > 2"})).a[2] == 3


@pytest.mark.parametrize("is_installed", [True, False])
@pytest.mark.parametrize("entry", ["{}/libs", "libs", "../{.name}/libs", "above.pth"])
def test_what_is_installed_anywhere_on_the_path_is_a_library(
    tmp_path, monkeypatch, is_installed, entry
):
    """As in ``pip install --user``, ``pip install --target``, PYTHONPATH, and ``sys.path``."""
    code = "class Reader: pass\ndef f(n: int, by: Reader = None): 'Do.'\n"
    libs = tmp_path / "libs"
    libs.mkdir()
    (libs / "acme.py").write_text(code)
    if is_installed:
        (libs / "acme-1.0.dist-info").mkdir()
    monkeypatch.chdir(tmp_path)
    if entry == "above.pth":  # as an environment has it that is made above another one
        (tmp_path / entry).write_text(str(libs))
        monkeypatch.setattr(sys, "path", list(sys.path))
        site.addsitedir(str(tmp_path))
    else:
        monkeypatch.syspath_prepend(entry.format(tmp_path))
    monkeypatch.delitem(sys.modules, "acme", raising=False)
    function = importlib.import_module("acme").f
    monkeypatch.delitem(sys.modules, "acme")
    if is_installed:
        assert read_function_schema(function).validate({"n": 1, "by": 2}) == {"n": 1, "by": 2}
    else:
        assert "`by`" in refusal_of(read_function_schema, function)


def test_types_that_only_the_docstring_says_are_used():
    def f(n, kind="a", sizes=None, scale=1.5, how=len):
        """Do.

        Parameters
        ----------
        n : int
            How many.
        kind : {'a', 'b'}, default 'a'
        sizes : list of float or None
        scale : int
            Its own default says that this is wrong.
        how : callable
        """

    assert properties(f) == {
        "n": {"type": "integer", "description": "How many."},
        "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "sizes": {
            "anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}],
            "default": None,
        },
        "scale": {
            "type": "number",
            "default": 1.5,
            "description": "Its own default says that this is wrong.",
        },
        "how": {},
    }
    assert read_function_schema(f).warnings == ()
    assert read_function_schema(f).untyped == ("how",)
    assert refusal_of_call(f, n="many") == "n: got 'many' (string); allowed: integer."


def test_a_long_docstring_is_cut_and_its_author_told():
    def f():
        """Replaced."""

    f.__doc__ = "word " * 20_000
    schema = read_function_schema(f)
    assert 9_900 < len(schema.description) <= 10_000
    assert schema.description.endswith("... [cut: 99,999 characters in all]")
    assert " ".join(schema.warnings) == (
        "The docstring has 99,999 characters, and clients read it in every list of tools: the "
        "first 10,000 are published."
    )


def refusal_of_call(function, **arguments):
    with pytest.raises(InvalidArguments) as raised:
        read_function_schema(function).validate(arguments)
    return str(raised.value)


@pytest.mark.parametrize("error", [KeyError, RuntimeError, ZeroDivisionError, RecursionError])
def test_whatever_a_validator_raises_is_an_answer_that_names_the_argument(error):
    def fail(value):
        if value == "bad":
            raise error("no luck")
        return value

    def f(a: str, b: Annotated[str, BeforeValidator(fail)]):
        """Do."""

    with pytest.raises(InvalidArguments) as raised:
        read_function_schema(f).validate({"a": "bad", "b": "bad"})
    told = str(raised.value)
    assert told.startswith(f"b: refused by a validator: {error.__name__}: ")
    assert "no luck" in told
