"""Output schemas, and structured results that match them, without a kernel."""

import base64
import contextlib
import dataclasses
import datetime as dt
import enum
import functools
import json
import sqlite3
import subprocess
import sys
import uuid
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar
from unittest.mock import Mock

import numpy as np
import pytest
from contents import only_text
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter
from jsonschema import Draft202012Validator
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PastDate,
    RootModel,
    WrapValidator,
    computed_field,
    field_serializer,
)
from schemas import check_schema
from typing_extensions import TypedDict

from mcp_notebook.content import Image, ResourceLink, Result
from mcp_notebook.errors import DefinitionError, InvalidResult
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.outputs import Displayed, Printed
from mcp_notebook.kernel.schemas.output.data_limit import shorten_data
from mcp_notebook.kernel.schemas.output.output_schema import (
    OutputSchema,
)
from mcp_notebook.kernel.schemas.output.published_schema import ABOUT
from mcp_notebook.kernel.schemas.recursion import has_id
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.settings.settings import Settings

NAN = float("nan")
UNSAID = object()
_UNASKED = (UNSAID, Result, None)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"


class Item(BaseModel):
    name: str = Field(serialization_alias="Name")
    price: float = 0.0


class Node(BaseModel):
    value: int
    kids: list["Node"] = []


class Page(BaseModel, Generic[T]):
    items: list[T]


class Numbers(RootModel[list[int]]):
    pass


class Row(TypedDict):
    a: int
    b: float


class Typed(TypedDict):
    type: str
    default: Annotated[int, AfterValidator(hex)]


@dataclasses.dataclass
class Visit:
    count: int
    when: dt.datetime | None = None


class Point(NamedTuple):
    x: int
    y: float


class Aliased(BaseModel):
    a_b: int = Field(alias="aB")


class Computed(BaseModel):
    x: int

    @computed_field
    def y(self) -> int:
        return "one"


class Careful(BaseModel):
    """Changes what it is given: to be made once only."""

    model_config = ConfigDict(extra="forbid", regex_engine="python-re")
    name: Annotated[str, Field(pattern="^(?=a)a$")]
    count: int = 0
    made: dict[Annotated[str, Field(pattern="(?=k)")], int] = {}

    def model_post_init(self, _context):
        self.count += 1

    @functools.cached_property
    def double(self):
        return self.name * 2


@dataclasses.dataclass
class Derived:
    x: int
    y: int = dataclasses.field(init=False, default=3)
    z: dataclasses.InitVar[int] = 1

    def __post_init__(self, z):
        self.y += z


class Lying(BaseModel):
    x: int

    @field_serializer("x")
    def _write(self, _value):
        return "five"


class Failing(BaseModel):
    x: int

    @field_serializer("x")
    def _write(self, _value):
        raise SystemExit(3)


def _careful():
    made = Careful(name="a", made={"k": 1})
    assert made.double == "aa"  # and is in its __dict__ now
    return made


def tool_of(annotation, **options):
    def tool():
        """D."""

    if annotation is not UNSAID:
        tool.__annotations__["return"] = annotation
    return make_tool(tool, ToolOptions(**options))


def asked_of(annotation, **options):
    """Return a tool whose author asks for a schema, unless the options say otherwise."""
    return tool_of(annotation, **{"output_schema": annotation not in _UNASKED} | options)


def result_of(annotation, value, outputs=(), limit=100_000, **options):
    """Return the result of a tool that returns this, after a client's own check.

    Its structured content is only the data.
    """
    return returned_by(asked_of(annotation, **options), value, outputs, limit)


def returned_by(tool, value, outputs=(), limit=100_000):
    """As `result_of`, for a tool that there is."""
    bounded = Settings(max_result_chars=limit)
    result = Converter(DisplayFormatter().format, bounded).make_result(value, outputs, tool.output)
    schema = tool.info.output_schema
    if result.structured is None:
        return result
    if schema is not None:
        check_schema(schema)
        Draft202012Validator(schema).validate(result.structured)
    data = {name: item for name, item in result.structured.items() if name != ABOUT}
    is_at_root = tool.output is not None and tool.output.is_at_root
    return dataclasses.replace(result, structured=data if is_at_root else data["result"])


@pytest.mark.parametrize(
    "annotation",
    [
        *(Item, Node, Row, Visit, Point, Page[Item], Numbers, dict, list[dict], set[str]),
        *(dict[str, float], list[Item], tuple[int, str], int, float, bool, dt.date, Decimal),
        *(uuid.UUID, PurePosixPath, Literal["a"], Colour, int | None, Item | None, Item | Node),
        Annotated[int, Field(ge=1)],
    ],
)
def test_an_annotation_becomes_a_schema_if_its_author_asks_for_it(annotation):
    schema = asked_of(annotation).info.output_schema
    check_schema(schema)
    assert schema["type"] == "object"
    assert schema == asked_of(annotation).info.output_schema
    tool = tool_of(annotation)
    assert (tool.output, tool.info.output_schema) == (None, None)
    assert returned_by(tool, 1).structured is None


def test_a_table_becomes_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": [0.5, NAN]}, index=["x", "y"])
    result = result_of(pandas.DataFrame, frame, output_schema=True)
    rows = [{"index": "x", "a": 1, "b": 0.5}, {"index": "y", "a": 2, "b": None}]
    assert result.structured == rows
    assert only_text(result).startswith("DataFrame: 2 rows")
    series = pandas.Series({"a": 1, "b": 2})
    assert result_of(pandas.Series, series, output_schema=True).structured == {"a": 1, "b": 2}


@pytest.mark.parametrize("annotation", [UNSAID, Result, Converter, "Missing"])
def test_a_schema_that_is_asked_for_and_cannot_be_is_refused(annotation):
    with pytest.raises(DefinitionError, match=r"`tool`: .*output_schema"):
        tool_of(annotation, output_schema=True)


@pytest.mark.parametrize(
    ("annotation", "value", "structured"),
    [
        (Item, Item(name="a", price=1), {"Name": "a", "price": 1.0}),
        (Item, {"name": "a"}, {"Name": "a", "price": 0.0}),
        (list[Item], [Item(name="a")], [{"Name": "a", "price": 0.0}]),
        (Item | None, None, None),
        (
            Node,
            Node(value=1, kids=[Node(value=2)]),
            {"value": 1, "kids": [{"value": 2, "kids": []}]},
        ),
        (Row, {"a": 1, "b": NAN}, {"a": 1, "b": None}),
        (Visit, Visit(1), {"count": 1, "when": None}),
        (Point, Point(1, 2.5), [1, 2.5]),
        (Numbers, Numbers([1]), [1]),
        (Aliased, Aliased(aB=1), {"aB": 1}),
        (Careful, _careful(), {"name": "a", "count": 1, "made": {"k": 1}}),
        (Derived, Derived(1), {"x": 1, "y": 4}),
        (float, NAN, None),
        (float, float("-inf"), None),
        (Decimal, Decimal("1.50"), "1.50"),
        (dt.timedelta, dt.timedelta(days=1), "P1D"),
        (dict[str, bytes], {"a": b"text", "b": b"\xff"}, {"a": "text", "b": "/w=="}),
        (dict[str, str], {"a": PurePosixPath("/x")}, {"a": "/x"}),
        (dict[str, int], {1: 2}, {"1": 2}),
        (dict[Colour, int], {Colour.RED: 2}, {"red": 2}),
        (dict, {1: 2, "1": 3, None: {4}}, {"1": 2, "'1'": 3, "null": [4]}),
        (dict, {"p": Point(1, NAN)}, {"p": {"x": 1, "y": None}}),
        (list[int], (number for number in range(3)), [0, 1, 2]),
        (str, "\ud800", "\ufffd"),
        (int, 2**70, 2**70),
    ],
)
def test_values_are_converted_to_match(annotation, value, structured):
    assert result_of(annotation, value).structured == structured


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("annotation", "value", "structured"),
    [
        *((int, value, value) for value in (0, -5, 2**63 - 1, 2**63, 10**90)),
        *((float, value, value) for value in (0.5, 1e300)),
        *((float, value, None) for value in (float("nan"), float("inf"), float("-inf"))),
        *(
            (int, True, 1),
            (int, 2.0, 2),
            (int, np.int64(7), 7),
            (float, 3, 3.0),
            (bool, True, True),
        ),
    ],
)
def test_a_number_is_sent_as_its_annotation_says(annotation, value, structured):
    output = asked_of(annotation).output
    sent, _ = output.convert(value, 1_000)
    assert (type(sent), repr(sent)) == (type(structured), repr(structured))
    with pytest.raises(InvalidResult, match="too large"):
        output.convert(value, 0)


def test_numpy_and_pandas_values_are_converted_to_match():
    np, pd = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    for annotation, value, structured in [
        (int, np.int64(3), 3),
        (bool, np.bool_(True), True),
        (float, np.float32(0.5), 0.5),
        (float, pd.NA, None),
        (dt.datetime, np.datetime64("2024-01-01"), "2024-01-01"),
        (dt.datetime, pd.Timestamp("2024-01-01"), "2024-01-01T00:00:00"),
        (list[float], np.array([1, np.nan]), [1.0, None]),
        (list[list[int]], np.eye(2), [[1, 0], [0, 1]]),
        (list[Row], pd.DataFrame({"a": [1], "b": [np.nan]}), [{"a": 1, "b": None}]),
        (list[int], pd.Series([1, 2]), [1, 2]),
        (list[float | None], [np.int8(1), pd.NaT], [1, None]),
    ]:
        made = result_of(annotation, value).structured
        assert made == structured or str(made).startswith(str(structured))
    moments = np.array(["2024-01-01", "NaT"], "M8[ns]")
    for annotation, value, made in [
        (list[dt.timedelta], np.array([10**9, 2], "m8[ns]"), ["PT1S", "PT0.000000002S"]),
        (list[dt.datetime], moments[:1], ["2024-01-01T00:00:00"]),
        (list[dt.datetime | None], [pd.NaT, None], [None, None]),
        (list[dt.datetime | None], moments, ["2024-01-01T00:00:00", None]),
        (list[list], [moments], [["2024-01-01T00:00:00", None]]),
        (list[list], [np.array([10**9], "m8[ns]")], [["PT1S"]]),
    ]:
        assert result_of(annotation, value).structured == made
    assert '"2024-01-01T00:00:00",null' in only_text(result_of(UNSAID, {"a": moments}))
    assert result_of(dict[str, float], pd.Series({"a": np.nan})).structured == {"a": None}
    visit = Visit(np.int64(3), pd.NaT)
    assert result_of(Visit, visit).structured == {"count": 3, "when": None}


def test_the_text_is_that_of_the_same_tool_without_a_schema():
    assert only_text(result_of(dict[str, float], {"a": NAN})) == '{"a":"NaN"}'
    assert only_text(result_of(list[int], [1, 2])) == "[1,2]"


def test_the_data_says_what_was_printed_and_drawn():
    picture = Image(PNG)
    store = ResourceStore("k", 10**9)
    converter = Converter(DisplayFormatter().format, Settings(), keep=store.keep)
    outputs = [Printed("hello\n"), Displayed({"image/png": PNG})]
    for annotation, value, data in ((int, 1, {"result": 1}), (Row, {"a": 1, "b": 2.0}, {"a": 1})):
        result = converter.make_result(value, outputs, asked_of(annotation).output)
        about = result.structured[ABOUT]
        assert about.startswith("hello\n\n[A picture of the result (image/png")
        (link,) = [block for block in result.content if isinstance(block, ResourceLink)]
        assert f'read_notebook_resource(uri="{link.uri}")' in about
        assert store.find_format(link.uri).content() == PNG
        assert data.items() <= result.structured.items()
    by_hand = converter.make_result(
        Result(["said", picture], structured=[1]), outputs, asked_of(Result).output
    )
    assert by_hand.structured[ABOUT].startswith("hello\n\n")
    assert by_hand.structured[ABOUT].count("[A picture") == 1  # it is sent once
    assert "said" in by_hand.structured[ABOUT]
    assert by_hand.structured["result"] == [1]
    assert ABOUT not in converter.make_result(1, (), asked_of(int).output).structured


def test_much_that_was_printed_is_shortened_in_the_data_and_has_an_address():
    store = ResourceStore("k", 10**9)
    converter = Converter(DisplayFormatter().format, Settings(), keep=store.keep)
    result = converter.make_result(1, [Printed("x" * 20_000)], asked_of(int).output)
    about = result.structured[ABOUT]
    assert len(about) < 5_500
    assert "characters left out" in about
    (link,) = [block for block in result.content if isinstance(block, ResourceLink)]
    assert link.uri in about
    assert store.find_format(link.uri).content() == "x" * 20_000


@pytest.mark.parametrize(
    ("annotation", "value", "said"),
    [
        (int, "abc", "result: got 'abc' (string); allowed: integer"),
        (int, None, "result: got None (null); allowed: integer"),
        (float, None, "result: got None (null); Input should be a valid number."),
        (list[Item], [Item(name="a"), {"name": "b", "price": "x"}], "result[1].price: got 'x'"),
        (Item, Item.model_construct(name="a", price="x"), "result.price: got 'x' (string)"),
        (Item, Item.model_construct(), "result.name: missing"),
        (Item, Item.model_construct(name="a", price=[]), "result.price: got [] (array)"),
        (Aliased, Aliased.model_construct(a_b="x"), "result.aB: got 'x' (string)"),
        (Computed, Computed(x=1), "result.y: got 'one' (string); allowed: integer"),
        (Visit, Visit("x"), "result.count: got 'x' (string); allowed: integer"),
        (Row, {"a": 1}, "result.b: missing"),
        (Lying, Lying(x=1), "result.x: got 'five' (string); allowed: integer"),
        (Annotated[int, AfterValidator(str)], 5, "result: got '5' (string); allowed: integer"),
        (
            list[Annotated[int, WrapValidator(lambda _v, _h: "x")]],
            [5],
            "result[0]: got 'x' (string)",
        ),
        (Typed, {"type": 1, "default": 5}, "result.type: got 1 (integer); allowed: string"),
        (Typed, {"type": "a", "default": 5}, "result.default: got '0x5' (string)"),
        (dict[int, str], {1: "a", "1": "b"}, "2 of its keys are the same in JSON"),
        (dict[int | str, str], {1: "a", "1": "b"}, "2 of its keys are the same in JSON"),
        (Literal["a"], "b", "result: got 'b' (string); allowed: 'a'"),
        (Annotated[int, Field(ge=3)], 2, "allowed: integer at least 3"),
        (PastDate, dt.date(2999, 1, 1), "(date); Date should be in the past"),
        (Annotated[dt.timedelta, Field(gt=dt.timedelta(1))], dt.timedelta(0), "greater than 1 day"),
        (dict[str, int], Mock(), "(Mock); allowed: object of integer"),
    ],
)
def test_a_result_that_does_not_match_is_an_error_that_says_where(annotation, value, said):
    result = result_of(annotation, value)
    assert result.is_error
    assert result.structured is None
    assert said in only_text(result)
    assert "\n" not in only_text(result)


def test_code_of_the_authors_that_fails_is_an_error():
    result = result_of(Failing, Failing(x=1))
    assert result.is_error
    assert "SystemExit" in only_text(result)


def test_what_contains_itself_is_refused():
    endless, ring = [], {}
    endless.append(endless)
    ring["a"] = ring
    for annotation, value in ((list[list], endless), (dict, ring)):
        assert "contains itself" in only_text(result_of(annotation, value))


def test_what_is_nested_deep_is_sent_whole_or_refused():
    deep = {}
    for _ in range(80):
        deep = {"a": deep}
    assert result_of(dict, deep).structured == deep
    for _ in range(80):
        deep = {"a": deep}
    assert "nested too deep" in only_text(result_of(dict, deep))


class Sale(TypedDict):
    n: int
    name: str


class Report(BaseModel):
    title: str
    rows: list[Sale]


ROWS = [{"n": number, "name": "x" * 20} for number in range(10_000)]


@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (list[int], list(range(40_000)), []),
        (list[Sale], ROWS, []),
        (Report, Report(title="t", rows=ROWS), ["rows"]),
        (dict, {"a": [0] * 50_000}, ["a"]),
        (dict[str, int], {str(number): 1 for number in range(15_000)}, []),
        (Result, Result(structured=list(range(30_000))), []),
        pytest.param(list[int], range(10**9), [], marks=pytest.mark.slow),
    ],
    ids=lambda case: type(case).__name__,
)
def test_of_what_is_too_large_a_part_is_sent_that_matches_and_text_and_data_say_which(
    annotation, value, path
):
    result = result_of(annotation, value)
    assert not result.is_error, result.content
    assert 80_000 < len(json.dumps(result.structured, ensure_ascii=False)) <= 100_000
    whole = value.structured if isinstance(value, Result) else value
    whole = whole.rows if isinstance(whole, Report) else whole
    part = result.structured
    for key in path:
        part = part[key]
        whole = whole[key] if isinstance(whole, dict) else whole
    said = f"the first {len(part):,} of {len(whole):,} items"
    assert said in result.content[0].text
    unchanged = Converter(DisplayFormatter().format, Settings(max_result_chars=100_000))
    output = asked_of(annotation).output
    assert said in unchanged.make_result(value, (), output).structured[ABOUT]
    if not isinstance(value, Result | dict) and not path:
        assert part == list(value[: len(part)])


@pytest.mark.parametrize(
    ("annotation", "value", "extensions"),
    [
        (dict, {"a": [0.5] * 40_000}, [".json"]),
        (dict, {"a": [123_456_789] * 15_000}, [".json"]),
        pytest.param(
            *(list[dict], ROWS, [".json", ".csv", ".parquet"]),
            marks=pytest.mark.needs("pyarrow"),
        ),
    ],
)
def test_one_link_leads_to_what_both_the_text_and_the_data_leave_out(annotation, value, extensions):
    store = ResourceStore("k", 10**9)
    converter = Converter(DisplayFormatter().format, Settings(), keep=store.keep)
    result = converter.make_result(value, (), asked_of(annotation).output)
    links = [block.uri for block in result.content if isinstance(block, ResourceLink)]
    assert [Path(uri).suffix for uri in links] == extensions
    whole = next(uri for uri in links if uri.endswith(".json"))
    assert json.loads(store.find_format(whole).content()) == value


class Counted(dict):
    """A dict of very many entries that counts how many are read."""

    read = 0

    def __len__(self):
        return 10**6

    def __iter__(self):
        return map(str, range(len(self)))

    def __getitem__(self, key):
        self.read += 1
        return int(key)


@pytest.mark.parametrize("limit", [1_000, 50_000])
def test_of_a_very_long_mapping_only_as_much_is_read_as_is_sent(limit):
    value = Counted()
    part, cuts = OutputSchema({"type": "object"}).convert(value, limit)
    assert len(part) > limit / 20
    assert [(cut.kept, cut.total) for cut in cuts] == [(len(part), 10**6)]
    assert value.read <= limit


def test_columns_side_by_side_are_cut_to_one_length_and_a_text_says_that_it_is_cut():
    columns = result_of(dict[str, list[float]], {"a": [1.5] * 50_000, "b": [0.25] * 50_000})
    assert len(columns.structured["a"]) == len(columns.structured["b"]) > 5_000
    text = result_of(dict[str, str], {"a": "word " * 100_000, "b": "whole"})
    assert text.structured["b"] == "whole"
    assert "of 500,000 characters left out" in text.structured["a"]


@pytest.mark.slow
def test_what_no_part_of_matches_the_schema_is_refused():
    @dataclasses.dataclass
    class Pair:
        items: Annotated[list[int], Field(min_length=39_000)]

    result = result_of(Pair, Pair(list(range(40_000))))
    assert result.is_error
    assert "too large" in only_text(result)
    assert "(the limit max_result_chars)" in only_text(result)
    assert result.structured is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=200,
)


@given(JSON, st.integers(1, 400))
def test_data_that_is_shortened_fits_and_what_is_not_shortened_is_whole(data, most):
    before = json.dumps(data)
    try:
        part, cuts = shorten_data(data, most)
    except InvalidResult:
        assert len(json.dumps(data, ensure_ascii=False)) > most
    else:
        assert len(json.dumps(part, ensure_ascii=False)) <= most
        assert (part == data) == (not cuts)
        assert type(part) is type(data)
    assert json.dumps(data) == before


# -- by hand ---------------------------------------------------------------------------------------

ORDERS = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/Item"}}},
    "required": ["items"],
    "$defs": {"Item": {"type": "object", "properties": {"price": {"type": "number"}}}},
}


def test_a_schema_by_hand_is_told_as_it_is_and_results_are_compared_with_it():
    told = tool_of(UNSAID, output_schema=ORDERS).info.output_schema
    about = told["properties"].pop(ABOUT)
    assert about["type"] == "string"
    assert told == ORDERS
    good = result_of(UNSAID, {"items": [{"price": 1}]}, output_schema=ORDERS)
    assert good.structured == {"items": [{"price": 1}]}
    bad = {"items": [{"price": 1}, {"price": "x"}]}
    said = only_text(result_of(UNSAID, bad, output_schema=ORDERS))
    assert "result.items[1].price: got 'x' (string); allowed: number" in said
    assert "`output_schema`" in said


def test_a_schema_by_hand_can_have_any_root():
    schema = {"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/N"}]}}
    schema["$defs"] = {"N": {"type": "integer"}}
    told = tool_of(UNSAID, output_schema=schema).info.output_schema
    assert told["properties"]["result"]["items"]["anyOf"][0] == {"$ref": "#/properties/result"}
    assert result_of(UNSAID, [1, [2]], output_schema=schema).structured == [1, [2]]
    assert "result[0][0]" in only_text(result_of(UNSAID, [["x"]], output_schema=schema))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "nothing"}, "'nothing'"),
        ({"$ref": "https://example.com/x"}, "nothing is fetched"),
        ({"$ref": "#/$defs/x"}, "which is not a schema within it"),
        ({"pattern": "("}, "regular expression"),
        ({"default": object()}, "is not valid JSON"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "JSON Schema 2020-12"),
        ({"properties": {"a": {"$id": "x"}}}, "`$id`"),
        ({"$ref": "#"}, "for the same value"),
        (5, "not 5"),
    ],
)
def test_a_schema_that_clients_could_not_use_is_refused(schema, said):
    with pytest.raises(DefinitionError) as refused:
        tool_of(int, output_schema=schema)
    assert said in str(refused.value)
    assert "`tool`" in str(refused.value)


def test_a_result_by_hand_is_validated_and_wrapped_too():
    assert result_of(int, Result("hi", structured=3)).structured == 3
    assert result_of(Item, Result("hi", structured={"name": "a"})).structured["Name"] == "a"
    assert "allowed: integer" in only_text(result_of(int, Result("hi", structured="x")))
    assert "has no `structured`" in only_text(result_of(int, Result("hi")))
    assert not result_of(int | None, Result("hi")).is_error  # None
    assert only_text(result_of(int, Result("failed", is_error=True))) == "failed"
    assert result_of(Result, Result(structured=[1, 2])).structured == [1, 2]


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({"a source": 1}, "'a source'"),
        ({3: 1}, "3"),
        ({"io.modelcontextprotocol/x": 1}, "MCP reserves"),
        ([1], "is a dict"),
    ],
)
def test_meta_under_a_key_that_is_not_the_authors_is_an_error(meta, said):
    result = result_of(Result, Result("hi", meta=meta))
    assert result.is_error
    assert said in only_text(result)


# -- any value, and threads ------------------------------------------------------------------------

_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.dates()
    | st.decimals()
    | st.uuids()
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.none(), inner),
    max_leaves=20,
)


_PICKY = (int, float, list[float], dict[str, int | str], Item, Visit, Point, Colour)
_make_tool = functools.cache(tool_of)  # once for all examples


@given(_VALUES)
def test_any_value_is_a_match_or_an_error(value):
    for annotation in _PICKY:
        returned_by(_make_tool(annotation, output_schema=True), value)


def test_a_plain_model_is_validated_again_and_compared_with_nothing():
    code = """
import dataclasses, sys
from pydantic import BaseModel
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions

class Item(BaseModel):
    name: str

@dataclasses.dataclass
class Visit:
    items: list[Item]

def visit() -> Visit:
    "D."

output = make_tool(visit, ToolOptions(output_schema=True)).output
assert output.convert(Visit([Item(name="a")]), 100) == ({"items": [{"name": "a"}]}, [])
assert "jsonschema" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.needs("polars", "pyarrow")
def test_rows_of_any_library_are_structured_when_asked_for():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    np = pytest.importorskip("numpy")
    rows = [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
    frame = pl.DataFrame(rows)
    array = np.array([(1, 0.5)], [("a", "i4"), ("b", "f8")])
    for annotation, value, made in [
        (pl.DataFrame, frame, rows),
        (pa.Table, frame.to_arrow(), rows),
        (pa.RecordBatch, frame.to_arrow().to_batches()[0], rows),
        (list[dict[str, Any]], frame, rows),
        (list[dict[str, Any]], array, [{"a": 1, "b": 0.5}]),
        (list[list], [frame, array], [rows, [{"a": 1, "b": 0.5}]]),
        (pl.Series, frame["b"], [None, "x"]),
        (list[int], pa.array([1, 2]), [1, 2]),
        (list[list], [pa.chunked_array([[1], [2]])], [[1, 2]]),
        (list[dict[str, Any]], rows, rows),
    ]:
        result = result_of(annotation, value, output_schema=True)
        assert result.structured == made
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert result_of(list, twice, output_schema=True).structured == [{"a": 1, "a_2": 2}]
    many = [{"a": n} for n in range(60)]
    text = only_text(result_of(list[dict[str, int]], many))
    assert text.startswith("list of dicts: 60 rows x 1 column\na int: ")
    assert len(text) < 500


def test_a_relation_of_duckdb_is_its_rows_wherever_it_is():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select i as a, 'x' || i as b, null as a from range(2) t(i)")
    rows = [{"a": 0, "b": "x0", "a_2": None}, {"a": 1, "b": "x1", "a_2": None}]
    for annotation, value, made in [
        (dict[str, Any], {"rows": relation}, {"rows": rows}),
        (dict[str, list], {"rows": relation}, {"rows": rows}),
        (list[dict[str, Any]], relation, rows),
        (duckdb.DuckDBPyRelation, relation, rows),
        (list, [relation], [rows]),
    ]:
        assert result_of(annotation, value, output_schema=True).structured == made
    result = Result("It.", structured={"rows": relation})
    assert result_of(None, result).structured == {"rows": rows}
    long = duckdb.sql("select i from range(1000000000) t(i)")
    for annotation in (dict[str, Any], dict[str, list]):
        assert "too large" in only_text(result_of(annotation, {"rows": long}, output_schema=True))


@pytest.mark.slow
@pytest.mark.needs("polars")
def test_of_too_many_rows_of_any_library_the_first_are_sent():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({f"c{n}": range(10_000) for n in range(10)})
    for value in (frame, frame.to_arrow()):
        result = result_of(list[dict[str, Any]], value)
        rows = result.structured
        assert rows == [{f"c{n}": number for n in range(10)} for number in range(len(rows))]
        assert f"the first {len(rows)} of 10,000 items are sent" in result.content[0].text


# -- rows and records where a dict is promised -----------------------------------------------------


class RainDict(TypedDict):
    city: str
    mm: float


class RainModel(BaseModel):
    city: str
    mm: float


ROME = {"city": "Rome", "mm": 0.1}


def test_a_row_of_a_database_is_taken_for_a_dict_or_a_model():
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute("select 'Rome' as city, 0.1 as mm").fetchall()
    for annotation in (list[dict], list[dict[str, Any]], list[RainDict], list[RainModel]):
        assert result_of(annotation, rows).structured == [ROME]
    assert result_of(RainModel, rows[0]).structured == ROME


# -- The places where a result does not match its schema. ------------------------------------------


def test_each_place_that_does_not_match_has_a_line():
    schema = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"price": {"type": "number"}},
            "required": ["price"],
        },
    }
    with pytest.raises(InvalidResult) as raised:
        OutputSchema(schema).convert([{"price": "x"}, {}, {"price": 1}], 1_000)
    assert (
        ": result[0].price: got 'x' (string); allowed: number; result[1]: 'price' missing. "
    ) in str(raised.value)


def test_of_a_choice_the_branch_of_the_values_own_type_is_explained():
    schema = {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "integer"}}]}
        },
    }
    with pytest.raises(InvalidResult, match=r"result\.a\[1\]: got 'x' .string.; allowed: integer"):
        OutputSchema(schema).convert({"a": [1, "x"]}, 1_000)


# -- The root of an output schema. -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$id": "x"}, True),
        ({"items": [{"$id": "x"}]}, True),
        ({"properties": {"$id": {"type": "string"}}}, False),
        ({"const": {"$id": "x"}}, False),
    ],
)
def test_an_id_is_found_where_it_is_a_keyword(schema, expected):
    assert has_id(schema) is expected
