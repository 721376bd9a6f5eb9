"""Schemas on disk: the one that would be built, or none."""

import enum
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import combinations
from pathlib import Path
from typing import (  # noqa: UP035 - both spellings
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NewType,
    Optional,
    Tuple,
    TypeVar,
)

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live import TIMEOUT
from pydantic import BaseModel, BeforeValidator, Field
from typing_extensions import TypeAliasType, TypedDict

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema
from mcp_notebook.kernel.schemas.schema_cache import SchemaCache
from mcp_notebook.kernel.tools.context import Context


@pytest.fixture
def cache(tmp_path):
    return SchemaCache(tmp_path / "schemas")


def files(tmp_path):
    return sorted((tmp_path / "schemas").glob("*"))


def function(hint=int, default=..., doc="Do.", name="f"):
    def f(a): ...

    f.__annotations__ = {"a": hint}
    f.__defaults__ = None if default is ... else (default,)
    f.__doc__, f.__name__ = doc, name
    return f


def color(**changed):
    """Return an enumeration as a cell may define it."""
    namespace = {"RED": "red", "BLUE": "blue"} | changed
    return enum.Enum("Color", namespace, module="__main__", qualname="Color")


def model(code, **names):
    namespace = {"__name__": "__main__", "BaseModel": BaseModel, "Field": Field, **names}
    exec(f"class Filter(BaseModel):\n    {code}", namespace)
    return namespace["Filter"]


# -- what is cached --------------------------------------------------------------------------------

KNOWN = {
    "int": int,
    "float": float,
    "list": list,
    "list of int": list[int],
    "dict": dict[str, int],
    "bare tuple": Tuple,  # noqa: UP006 - another object than `tuple`
    "empty tuple": tuple[()],
    "tuple": tuple[int, ...],
    "optional": Optional[int],  # noqa: UP045 - as above
    "union": int | str,
    "other order": str | int,
    "literal": Literal["a", "b"],
    "literal 1": Literal[1],
    "literal True": Literal[True],
    "literal '1'": Literal["1"],
    "bound": Annotated[int, Field(ge=1)],
    "other bound": Annotated[int, Field(gt=1)],
    "float bound": Annotated[float, Field(ge=1)],
    "pattern": Annotated[str, Field(pattern="a")],
    "described": Annotated[int, Field(description="A.")],
    "text": Annotated[int, "A."],
    "extra": Annotated[int, Field(json_schema_extra={"x": 1})],
    "field default": Annotated[int, Field(default=None)],
    "date": date,
    "any": Any,
}


@pytest.mark.parametrize("hint", KNOWN.values(), ids=KNOWN)
def test_what_comes_from_the_disk_is_what_would_be_built(cache, tmp_path, hint):
    built = read_function_schema(function(hint))
    assert read_function_schema(function(hint), cache=cache) == built
    assert len(files(tmp_path)) == 1
    assert read_function_schema(function(hint), cache=SchemaCache(tmp_path / "schemas")) == built
    assert len(files(tmp_path)) == 1


def test_no_two_of_them_have_the_same_key(cache):
    keys = {name: cache.key(hint) for name, hint in KNOWN.items()}
    assert [pair for pair in combinations(keys, 2) if keys[pair[0]] == keys[pair[1]]] == []


HINTS = st.sampled_from([*KNOWN.values(), Context])
DEFAULTS = st.one_of(
    st.just(...),
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    *(st.decimals(), st.dates(), st.datetimes(), st.lists(st.integers(0, 1), max_size=2)),
    st.sampled_from([(), (1,), {}, {"a": 1}, {"a": True}, set(), frozenset(), "a\ud800"]),
    st.sampled_from([{1, 2}, {"a", "b"}, Path("a"), datetime(2024, 5, 31, tzinfo=UTC)]),
)
DOCS = st.sampled_from([None, "", "Do.", "Do it.", "Do.\n\nArgs:\n    a: It.\n    b: No."])


def outcome(made, cache):
    try:
        return read_function_schema(made, hidden_types=(Context,), cache=cache)
    except DefinitionError as error:
        return str(error)


@pytest.mark.slow
@given(st.lists(st.tuples(HINTS, DEFAULTS, DOCS, st.sampled_from("fg")), min_size=2, max_size=6))
def test_no_schema_from_the_disk_ever_differs_from_the_one_that_would_be_built(
    tmp_path_factory, functions
):
    cache = SchemaCache(tmp_path_factory.mktemp("schemas"))
    for each in [*functions, *functions]:
        assert outcome(function(*each), cache) == outcome(function(*each), None)


def test_a_default_that_is_a_field_stays_what_it_is(cache):
    made = function(int, Field(3, ge=1))
    read_function_schema(made, cache=cache)
    assert read_function_schema(made, cache=cache).validate({}) == {"a": 3}


def test_what_is_refused_is_not_kept(cache, tmp_path):
    for _ in range(2):
        with pytest.raises(DefinitionError, match="default"):
            read_function_schema(function(Annotated[int, Field(ge=1)], 0), cache=cache)
    assert files(tmp_path) == []


# -- what is not cached ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    x: int


class Typed(TypedDict):
    x: int


class Text(str):
    __slots__ = ()


class Equal:
    """Says that it equals anything, and hashes as a type that is known."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash(int)


class Raises:
    def __hash__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "value",
    [
        *(Point, Typed, Text, Equal(), Raises(), NewType("N", int)),
        *(Point(1), Text("a"), {"a": Point(1)}, {Point(1)}, lambda: 1),
        *(TypeVar("T", bound=Point), TypeAliasType("Alias", int), list[ForwardRef("Point")]),
        *(color(), color().RED, model("a: int"), list[model("a: int")]),
        Annotated[int, BeforeValidator(int)],
        Annotated[int, Field(json_schema_extra=lambda _: None)],
        *(list[Point], Literal["a"] | Point),
    ],
    ids=lambda part: type(part).__name__,
)
def test_what_cannot_be_told_exactly_has_no_key(cache, value):
    assert cache.key(value) is None


def test_a_file_named_like_a_module_of_python_is_the_authors(cache, monkeypatch):
    kind = enum.Enum("Kind", {"A": "a"}, module="calendar")
    monkeypatch.setattr("calendar.Kind", kind, raising=False)
    assert cache.key(kind) is None


# -- the disk --------------------------------------------------------------------------------------

DAMAGED = {
    "empty": lambda _: "",
    "cut": lambda text: text[:-1],
    "another letter": lambda text: text.replace("integer", "integes"),
    "no digest": lambda text: text.partition("\n")[2],
    "no JSON": lambda _: "x",
    "no text": lambda _: "\udcff\udcfe",
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_built_anew(cache, tmp_path, damage):
    built = read_function_schema(function(), cache=cache)
    (path,) = files(tmp_path)
    good = path.read_text("ascii")
    path.write_bytes(damage(good).encode("utf-8", "surrogateescape"))
    assert read_function_schema(function(), cache=cache) == built
    assert path.read_text("ascii") == good


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(cache, tmp_path):
    built = read_function_schema(function(), cache=cache)
    (path,) = files(tmp_path)
    path.unlink()
    os.mkfifo(path)
    assert read_function_schema(function(), cache=cache) == built


def test_another_schemas_file_under_this_name_is_built_anew(cache, tmp_path):
    read_function_schema(function(str), cache=cache)
    (other,) = files(tmp_path)
    built = read_function_schema(function(int), cache=cache)
    (path,) = set(files(tmp_path)) - {other}
    path.write_bytes(other.read_bytes())
    assert read_function_schema(function(int), cache=cache) == built


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path):
    (tmp_path / "schemas").write_text("a file, no folder")
    cache = SchemaCache(tmp_path / "schemas")
    assert read_function_schema(function(), cache=cache) == read_function_schema(function())


def test_old_files_go_and_so_do_the_oldest_of_too_many(tmp_path):
    cache = SchemaCache(tmp_path, max_files=2)
    for age, name in [(0.5, "young"), (1, "middle"), (2, "older"), (100, "oldest")]:
        (tmp_path / f"{name}.json").touch()
        when = time.time() - age * 86_400
        os.utime(tmp_path / f"{name}.json", (when, when))
    cache.put("new", {})
    assert {path.name for path in tmp_path.iterdir()} == {"new.json", "young.json"}


FILL = """
import sys
from pathlib import Path
from mcp_notebook.kernel.schemas.schema_cache import SchemaCache
cache = SchemaCache(Path(sys.argv[1]))
for number in range(100):
    cache.put(f"{number % 20}", {"a": "x" * 10_000})
    assert cache.get(f"{number % 20}") == {"a": "x" * 10_000}
"""


@pytest.mark.slow
def test_several_processes_may_write_at_once(tmp_path):
    command = [sys.executable, "-c", FILL, tmp_path]
    running = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(TIMEOUT) for process in running] == [0, 0]
    assert len(list(tmp_path.iterdir())) == 20
