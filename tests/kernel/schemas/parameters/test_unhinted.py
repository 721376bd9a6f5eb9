"""Parameters without a type hint: what their defaults and the function's body say."""

import functools
import linecache

import numpy as np
import pandas as pd
import pytest
from schemas import check_schema

from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema
from mcp_notebook.kernel.schemas.parameters.unhinted import explain_list
from mcp_notebook.kernel.schemas.schema_cache import SchemaCache

NUMBER = {"type": "number"}


def read(function):
    schema = read_function_schema(function, has_description=True)
    check_schema(schema.input_schema)
    return schema


def with_default(default):
    def f(x=default):
        """Do."""

    return read(f)


@pytest.mark.parametrize(
    ("default", "published", "taken", "refused"),
    [
        (3, NUMBER, [(4, 4), (4.0, 4), ("4", 4), (2.5, 2.5), ("2.5", 2.5)], ["a", True, [1], None]),
        (0.5, NUMBER, [(30, 30), (1.0, 1.0), ("0.25", 0.25)], ["a", False, {}]),
        (True, {"type": "boolean"}, [(False, False), ("FALSE", False)], ["no", 1]),
        ("a", {"type": "string"}, [("4", "4"), ("true", "true"), ("", "")], [4, True]),
        ((8, 6), {}, [([1, 2], (1, 2)), ("[1, 2]", (1, 2)), (3, 3), ("a", "a")], []),
        ([], {}, [([1], [1]), ("[1]", [1]), ("a", "a"), (None, None)], []),
        ({}, {}, [({"a": 1}, {"a": 1}), ('{"a": 1}', {"a": 1}), (5, 5)], []),
        (None, {}, [("4", "4"), (True, True)], []),
    ],
)
def test_a_default_says_the_type(default, published, taken, refused):
    schema = with_default(default)
    keywords = dict(schema.input_schema["properties"]["x"])
    assert keywords.pop("default") == (list(default) if isinstance(default, tuple) else default)
    assert keywords == published
    assert schema.validate({})["x"] is default
    for sent, value in taken:
        got = schema.validate({"x": sent})["x"]
        assert (type(got), got) == (type(value), value)
    for sent in refused:
        with pytest.raises(InvalidArguments, match=r"x: got .*; allowed: "):
            schema.validate({"x": sent})


def test_a_default_is_no_type_where_the_docstring_or_a_library_allows_more():
    def f(bins=10, count=3):
        """Do.

        Args:
            bins (int or 'auto' or edges): The bins.
            count (number of things): How many.
        """

    schema = read(f)
    assert schema.validate({"bins": "auto", "count": "4"}) == {"bins": "auto", "count": 4}
    assert "type" not in read(np.histogram_bin_edges).input_schema["properties"]["bins"]


def in_body(code):
    """Return a function of `x` with this body, as a cell defines it."""
    source = f"def f(x, y=None):\n    {code}"
    namespace = {"__name__": "__main__", "np": np, "pd": pd}
    exec(compile(source, f"<{code}>", "exec"), namespace)
    linecache.cache[f"<{code}>"] = (len(source), None, source.splitlines(True), "")
    return namespace["f"]


LIST, ROWS = [3.0, 1.0, 2.0], [{"a": 1, "b": 2}, {"a": 1, "b": 4}]


@pytest.mark.parametrize(
    ("code", "sent", "kind"),
    [
        ("return x.T", [LIST], np.ndarray),
        ("return x.shape[0], x.std()", LIST, np.ndarray),
        ("return x @ y", LIST, np.ndarray),
        ("return y @ x", LIST, np.ndarray),
        ("return x[1:-1, 2:]", [LIST], np.ndarray),
        ("return x[:, 0]", [LIST], np.ndarray),
        ("return x[x > 1]", LIST, np.ndarray),
        ("return x[..., 0]", [LIST], np.ndarray),
        ("return x.mean()", LIST, np.ndarray),
        ("return x.mean()", ROWS, pd.DataFrame),
        ("return x.groupby('a').b.sum()", ROWS, pd.DataFrame),
        ("return x.groupby('a').sum(), x.b", {"a": [1], "b": [2]}, pd.DataFrame),
        ("return x['a'].mean()", ROWS, pd.DataFrame),
        ("return x[y].describe()", ROWS, pd.DataFrame),
        ("return x[y].sum()", ROWS, pd.DataFrame),
        ("return x[0].sum()", [LIST], np.ndarray),
        ("return x[['a', 'b']]", ROWS, pd.DataFrame),
        ("return x[(x['a'] > 0) & (x['b'] < 3)]", ROWS, pd.DataFrame),
        ("return x[x.a > 0]", ROWS, pd.DataFrame),
        ("x = x.copy(); x['c'] = 1; return x[x['a'] > 0]", ROWS, pd.DataFrame),
        ("return x.rolling(2).mean()", LIST, pd.Series),
        ("return x.head()", {"a": 1, "b": 2}, pd.Series),
        ("return x.head()", ROWS, pd.DataFrame),
        ("x = x.sum() if x.T is y else x\n    return x", LIST, np.ndarray),
    ],
)
def test_what_the_body_uses_as_an_array_or_a_table_becomes_one(code, sent, kind):
    schema = read(in_body(code))
    assert type(schema.validate({"x": sent})["x"]) is kind
    [warning] = [text for text in schema.warnings if text.startswith("`x`")]
    assert warning.startswith("`x` has no type hint: lists become a")
    assert " as the body has `" in warning


@pytest.mark.parametrize(
    "code",
    [
        "return x[0], len(x), sum(x), x * 2, max(x)",
        "return x['key'], x[1:], x[max(0, 1):]",
        "x.append(1); return x.shape",
        "return x.items(), x.T",
        "return x['a'].values(), x['b'].index(1)",
        "return x.index(1), x.mean()",
        "return x[0].split(), x[y].items(), x['a'].get(1)",
        "return x if isinstance(x, list) else x.T",
        "return x * 2 if np.isscalar(x) else x.sum()",
        "return y if x == 'all' else x.cumsum()",
        "try:\n        return x.shape[0]\n    except AttributeError:\n        return 0",
        "match x:\n        case str():\n            return 1\n    return x.shape",
        "return sum(x.sum() for x in x)",
        "x = np.asarray(x)\n    return x.shape",
        "x = pd.read_csv(x)\n    return x.groupby('a').sum()",
        "x = x['data']\n    return x.shape",
        "return [g(1) for g in [lambda x: x.T]]",
        "return x.predict(y), x.shape",
        "return x.std(), x.mean()",  # arrays and series differ in it
        "return x.strip().split()",
        "return 'x.T'",
    ],
)
def test_what_shows_nothing_leaves_lists_lists(code):
    schema = read(in_body(code))
    assert "x" in schema.untyped
    assert schema.validate({"x": LIST})["x"] is LIST


@pytest.mark.parametrize(
    "code", ["return x.groupby('a').sum()", "return x.head()", "return x.mean()", "return x.T"]
)
def test_texts_that_stand_for_nothing_are_taken_where_the_default_is_nothing(code):
    f = in_body(code)
    f.__defaults__ = (None, None)
    for sent in ("", "null", " None "):
        assert read(f).validate({"x": sent})["x"] is None
    with pytest.raises(InvalidArguments, match="x: got 'a'"):
        read(f).validate({"x": "a"})


def test_what_the_body_shows_is_the_same_in_a_schema_of_an_earlier_start(tmp_path):
    for code, kind in (("return x.mean()", np.ndarray), ("return x.head()", pd.Series)):
        for _ in range(2):
            schema = read_function_schema(in_body(code), cache=SchemaCache(tmp_path))
            assert type(schema.validate({"x": LIST})["x"]) is kind
            assert "as the body has" in "".join(schema.warnings)
    assert len(list(tmp_path.iterdir())) == 2


def test_the_body_of_a_cell_and_a_method_show_it_too():
    class A:
        def f(self, x):
            """Do."""
            return x.T

    assert type(read(A().f).validate({"x": LIST})["x"]) is np.ndarray
    cell = in_body("return x.T")
    linecache.cache[cell.__code__.co_filename] = (9, None, ["%%mcp_tool f(x)\n", "\n", "x.T"], "")
    assert type(read(cell).validate({"x": LIST})["x"]) is np.ndarray
    read(in_body(f"return {' @ '.join('x' * 900)}"))  # too deep to be read
    linecache.cache.pop(cell.__code__.co_filename)  # no source
    assert read(cell).validate({"x": LIST})["x"] is LIST


def test_a_body_says_nothing_where_the_author_says_more():
    def f(x: list, y=[1], z="a"):  # noqa: B006
        """Do."""
        return x.T, y.T, z.T

    assert read(f).validate({"x": [1], "y": [2], "z": "b"}) == {"x": [1], "y": [2], "z": "b"}


@pytest.mark.parametrize(
    ("code", "is_explained"),
    [
        ("[].shape", True),
        ("{}.groupby", True),
        ("[1] * 2.5", True),
        ("[1] - 1", True),
        ("list([1])['a']", True),
        ("[1] > 1", True),
        ("[].items", False),
        ("[].predict", False),
        ("'a' + 1", False),
        ("[][1]", False),
    ],
)
def test_an_error_about_a_list_says_which_type_hint_to_write(code, is_explained):
    schema = read(in_body("return g(x)")).input_schema
    with pytest.raises(Exception) as raised:  # noqa: PT011 - Python's own
        eval(code)
    told = explain_list(raised.value, {"x": [1], "y": 5}, schema) or ""
    assert told.startswith("Nothing says the type of `x`, so lists stay lists: ") == is_explained
    assert ("`np.ndarray`" in told) == is_explained
    assert explain_list(raised.value, {"x": 1}, schema) is None


def test_the_body_of_a_wrapped_function_shows_what_is_sent_if_the_wrapper_passes_that_on():
    def f(x, k=1):
        return x.T * k

    wrapper = functools.wraps(f)(lambda *args, k=1, **kwargs: f(*args, k=k, **kwargs))
    assert read(wrapper).input_schema == read(f).input_schema
    assert read(wrapper).untyped == ()


def test_the_body_of_a_wrapped_function_shows_nothing_if_the_wrapper_changes_what_is_sent():
    f = in_body("return x.T")
    assert read(f).input_schema["properties"]["x"] != {}
    assert (
        read(functools.wraps(f)(lambda *values: f(*map(np.array, values)))).input_schema[
            "properties"
        ]["x"]
        == {}
    )


def test_a_type_in_the_docstring_counts_more_than_the_body():
    f = in_body("return x.mean()")
    f.__doc__ = "Do.\n\nArgs:\n    x (list of float): Values."
    schema = read(f)
    assert schema.input_schema["properties"]["x"]["type"] == "array"
    assert not any("has no type hint: lists become" in warning for warning in schema.warnings)


@pytest.mark.parametrize("words", ["int/None", "array-like of weights", "column name, list"])
def test_a_default_beside_alternatives_in_the_docstring_allows_any_value(words):
    f = in_body("return x")
    f.__defaults__ = (1.0, None)
    f.__doc__ = f"Do.\n\nArgs:\n    x ({words}): It."
    assert read(f).validate({"x": [1, 2]})["x"] == [1, 2]
