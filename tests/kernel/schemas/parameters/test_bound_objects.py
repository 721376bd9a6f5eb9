"""Parameters that get an object of the notebook in place of what no client can send."""

import collections
import datetime as dt
import enum
import functools
import importlib
import io
import pathlib
import re
import sqlite3
import sys
import uuid
from contextlib import closing
from typing import NamedTuple

import pytest

from mcp_notebook.errors import CallError, DefinitionError
from mcp_notebook.kernel.schemas.parameters.bound_objects import is_object, read_objects
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions

Color = enum.Enum("Color", "RED")


class Point(NamedTuple):
    """A point."""

    x: int
    y: int


class Shop:
    """A class of the notebook's."""


def of(library, make):
    """Return the parameters of a case with a value of a library that may not be installed."""
    needed = [] if library in sys.stdlib_module_names else [library.partition(".")[0]]
    return pytest.param(library, make, marks=[pytest.mark.needs(name) for name in needed])


@pytest.mark.parametrize(
    ("library", "make"),
    [
        of("pandas", lambda pd: pd.DataFrame({"dtype": [1], "tolist": [1]})),
        of("pandas", lambda pd: pd.DataFrame({"a": [1]}).groupby("a")),
        of("polars", lambda pl: pl.DataFrame({"a": [1]})),
        of("polars", lambda pl: pl.LazyFrame({"a": [1]})),
        of("pyarrow", lambda pa: pa.table({"a": [1]})),
        of("xarray", lambda xr: xr.Dataset({"a": ("x", [1])})),
        of("sklearn.linear_model", lambda linear: linear.LinearRegression()),
        of("statsmodels.api", lambda sm: sm.OLS([1.0, 2, 3], [1.0, 2, 4]).fit()),
        of("matplotlib.figure", lambda figure: figure.Figure()),
        of("matplotlib.figure", lambda figure: figure.Figure().subplots()),
        of("networkx", lambda nx: nx.DiGraph()),
        of("numpy", lambda np: np.random.default_rng(0)),
        of("sys", lambda _: Shop()),
    ],
)
def test_frames_models_axes_graphs_and_connections_are_objects(library, make):
    assert is_object(make(importlib.import_module(library)))


@pytest.mark.parametrize(
    ("library", "make"),
    [
        of("numpy", lambda np: np.zeros((2, 2))),
        of("numpy", lambda np: np.float64(1)),
        of("numpy", lambda np: np.sin),
        of("pandas", lambda pd: pd.Series([1])),
        of("pandas", lambda pd: pd.Index([1])),
        of("pandas", lambda pd: pd.Categorical(["a"])),
        of("pandas", lambda pd: pd.Timestamp("2020")),
        of("pandas", lambda pd: pd.Period("2020")),
        of("pandas", lambda pd: pd.NA),
        of("polars", lambda pl: pl.Series([1])),
        of("pyarrow", lambda pa: pa.array([1])),
        of("pyarrow", lambda pa: pa.chunked_array([[1]])),
        of("xarray", lambda xr: xr.DataArray([1])),
        of("scipy.sparse", lambda sparse: sparse.csr_matrix((2, 2))),
        of("sympy", lambda sympy: sympy.Symbol("x") ** 2),
        of("ipywidgets", lambda widgets: widgets.IntSlider()),
        *(
            of("sys", lambda _, value=value: value)
            for value in (
                *(5, 1.5, True, None, "x", b"x", [1], (1,), {"a": 1}, {1}, range(3), len, Shop),
                *(of, sys, lambda: 1, functools.partial(len, []), "".join, (x for x in "ab")),
                *(dt.date(2020, 1, 1), dt.timedelta(1), uuid.uuid4(), Color.RED),
                *(pathlib.Path(), io.StringIO(), Point(1, 2), collections.deque(), {}.keys()),
                *(collections.Counter(), ValueError("x"), functools.lru_cache(len)),
            )
        ),
    ],
)
def test_values_arrays_containers_and_functions_are_none(library, make):
    assert not is_object(make(importlib.import_module(library)))


def bound(function, **variables):
    schema = read_function_schema(function, variables=variables)
    assert schema.input_schema["properties"].keys().isdisjoint(schema.bound)
    return schema.bound


def documented(df):
    """Look.

    Args:
        df (str): The name of a frame.
    """


def documented_frame(df):
    """Look.

    Args:
        df (pandas.DataFrame): A frame.
    """


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda df: df, ("df",)),
        (lambda df, /, n: (df, n), ("df",)),
        (lambda *, df: df, ("df",)),
        (lambda df=None: df, ()),
        (lambda n, *df: (n, df), ()),
        (lambda n, df: n == df, ()),  # a value, not the frame: `for name, df in ...` has left it
        (lambda n, df: n[df], ()),
        (lambda df: df is None, ("df",)),
        (lambda frame: frame, ()),
        (lambda number: number, ()),
        (functools.partial(lambda df, n: (df, n), df=1), ()),
        (documented, ()),
        (documented_frame, ("df",)),
    ],
)
def test_a_required_parameter_without_a_type_gets_the_object_of_its_name(function, expected):
    df = pytest.importorskip("pandas").DataFrame({"a": [1]})
    assert bound(function, df=df, number=5) == expected


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (sqlite3.Connection, ("source",)),
        (sqlite3.Connection | None, ("source",)),
        ("Shop", ("source",)),
        (str, ()),
        (dict, ()),
        (object, ()),
    ],
)
def test_a_type_hint_makes_it_a_parameter_if_clients_can_send_such_a_type(hint, expected):
    def query(source):
        return {}[source]  # only of a parameter without a hint does this say anything

    query.__annotations__["source"] = hint
    with closing(sqlite3.connect(":memory:")) as source:
        assert bound(query, source=source) == expected


def test_a_frame_with_a_hint_comes_from_the_client_as_rows():
    pd = pytest.importorskip("pandas")

    def summary(df): ...

    summary.__annotations__["df"] = pd.DataFrame
    assert bound(summary, df=pd.DataFrame({"a": [1]})) == ()


def test_a_deleted_variable_is_an_error_that_names_it():
    with pytest.raises(CallError, match="variable `df`, which was deleted"):
        read_objects(["df"], {})


def summarize(fit, n):
    """Summarize."""
    return fit.summary(n)


def prepare(df, text, day):
    """Prepare."""
    df = list(df)
    return df.missing, text.upper(), day.strftime("%Y")


@pytest.mark.parametrize(
    ("function", "name", "use", "way"),
    [
        (summarize, "fit", "fit.summary", "my_summarize(n)` with the line `summarize(my_fit, n)"),
        # Only what no JSON value has, and only of what is sent.
        (
            prepare,
            "day",
            "day.strftime",
            "my_prepare(df, text)` with the line `prepare(",
        ),
        (lambda df: df.cf, "df", "df.cf", "my_tool()` with the line `tool(my_df)"),
    ],
)
def test_without_such_an_object_the_author_is_told_what_to_write(function, name, use, way):
    declared_as = "tool" if function.__name__ == "<lambda>" else function.__name__
    notes = make_tool(function, ToolOptions(name=declared_as)).notes
    (note,) = (note for note in notes if f"`{name}`" in note)  # nothing else is said of it
    assert note.startswith(f"Clients cannot send `{name}`, an object (`{use}`). Declare the tool")
    assert f"`%%mcp_tool {way}" in note


def passing(function):
    """Return a wrapper that passes on what it gets."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if args == (wrapper,):
            repr(last)
        return function(*args, **kwargs)

    for last in ():  # the wrapper's cell of this variable stays empty
        repr(last)
    return wrapper


def checking(function):
    """Return a wrapper that looks at what it passes on."""

    @functools.wraps(function)
    def wrapper(df, n):
        assert n
        return function(df, n=n)

    return wrapper


def looking_up(function):
    """Return a wrapper that makes something else of a name."""

    @functools.wraps(function)
    def wrapper(df, *args, **kwargs):
        repr(df)
        return function({"a": 1}[df], *args, **kwargs)

    return wrapper


def replacing(function):
    """Return a wrapper that changes what it gets."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        kwargs["df"] = len(kwargs["df"])
        return function(*args, **kwargs)

    return wrapper


def noting(note):
    """Return a decorator whose wrapper passes on what it gets, but not to its function."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(df, n):
            note(df, n)
            return function({"a": 1}[df], n)

        return wrapper

    return decorate


def trying_again(function):
    """Return a wrapper that passes on what it gets, and then something else."""

    @functools.wraps(function)
    def wrapper(df, n):
        return function(df, n) or function({"a": 1}[df], n)

    return wrapper


@pytest.mark.parametrize(
    ("decorators", "expected"),
    [
        ([passing], ("df",)),
        ([checking], ("df",)),
        ([passing, checking, passing], ("df",)),
        ([functools.lru_cache], ("df",)),
        ([looking_up], ()),
        ([replacing], ()),
        ([noting(print)], ()),
        ([trying_again], ()),
        ([passing, looking_up], ()),
        ([looking_up, passing], ()),
    ],
)
def test_a_wrapped_function_gets_the_object_if_its_wrapper_passes_on_what_it_gets(
    decorators, expected
):
    def look(df, n):
        return df.describe(n)

    wrapped = look
    for decorator in decorators:
        wrapped = decorator(wrapped)
    assert bound(wrapped, df=Shop()) == expected


@pytest.mark.parametrize(
    ("code", "sent"),
    [
        ("def f(obj, n, /, k=3, *rest, by, how='a', key=len, shop): return obj.name", "n=1 by=2"),
        ("def f(n, *, obj): return obj.name, n", "n=1"),
        ("def f(obj, n, most=float('inf'), *, gap=float('nan')): return obj.name, most", "n=1"),
        ("def f(obj, año, key=len, last=None): return obj.name, año", "ano=1"),
        ("def f(shop, obj, ctx: Context, *, n: int = 3, **more): return obj.name, ctx.tool", "n=1"),
        ("f = partial(lambda a, b, obj, c: (a, obj.name, c), 1, b=2)", "c=1"),
    ],
)
def test_the_line_to_write_in_place_of_an_object_works_as_it_stands(shared_kernel, code, sent):
    """Whatever other parameters the function has."""
    kernel = shared_kernel
    kernel.ok("%reload_ext mcp_notebook\nfrom functools import partial")
    kernel.ok("from mcp_notebook import Context\nclass Shop: name = 'Ada'\nshop = Shop()")
    kernel.ok(code)
    said = kernel.ok("%mcp_tool f").text
    head, line = re.search(r"write `(%%mcp_tool .*?)` with the line `(.*?)`", said).groups()
    kernel.ok("my_obj = Shop()")
    kernel.ok(f"{head}\n{line}")
    assert "Ada" in kernel.ok(f"%mcp call my_f {sent}").stdout


def test_a_type_that_cannot_be_sent_and_has_no_object_is_refused_with_what_to_write():
    def query(sql: str, conn: sqlite3.Connection): ...

    with pytest.raises(DefinitionError, match=r"my_query\(sql\)` with the line `query\(sql, my_co"):
        read_function_schema(query)

    def optional(conn: sqlite3.Connection | None = None): ...

    with pytest.raises(DefinitionError, match=r"to convert it\.$"):
        read_function_schema(optional)
