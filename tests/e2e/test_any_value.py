"""Whatever a tool returns or shows, its client gets a valid result, and the next call works.

hypothesis makes up values, `odd_values` has those that nobody would make up; they go through the
whole way: a real kernel, a real bridge, the official client in every era.

``pytest tests/e2e/test_any_value.py --any-values 5000`` sends so many; without the option a few.
"""

import base64
import json
import pickle
from decimal import Decimal
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from clients import ERAS, connected, structured, text_of
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent
from odd_values import ODD

from mcp_notebook import Audio, Image, Resource, Result, Text
from mcp_notebook import ResourceLink as Link

TESTS = Path(__file__).parents[1]
BLOCKS = (TextContent, ImageContent, AudioContent, EmbeddedResource, ResourceLink)
MOST_CHARS = 30_000
"""What a result's texts may be, with the notes about what was left out."""
SETUP = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
import asyncio, base64, pickle, time, warnings
from typing import Any
from IPython.display import display
from mcp_notebook import mcp_tool
from odd_values import ODD
warnings.simplefilter("ignore")
closed = []

def made(value):
    return ODD[value[4:]]() if value.startswith("odd:") else pickle.loads(base64.b64decode(value))

@mcp_tool
def give(value: str):
    return made(value)

@mcp_tool
async def give_later(value: str):
    return made(value)

@mcp_tool(run="thread")
def give_beside(value: str):
    return made(value)

@mcp_tool
def give_data(value: str) -> Any:
    return made(value)

@mcp_tool
def give_object(value: str) -> dict[str, Any]:
    return made(value)

@mcp_tool
def give_numbers(value: str) -> list[int]:
    return made(value)

@mcp_tool
def give_list(value: str):
    return [made(value), 1, {{"key": made(value)}}]

@mcp_tool
def show(value: str):
    display(made(value))
    print(made(value))

@mcp_tool
def fail(value: str):
    raise RuntimeError(made(value))

@mcp_tool
async def count(most: int):
    try:
        for number in range(most):
            yield number
    finally:
        await asyncio.sleep(0)
        closed.append(most)

@mcp_tool
def were_closed() -> list[int]:
    return closed

class Endless:
    def __repr__(self):
        while True:
            time.sleep(0.001)

@mcp_tool
def endless():
    return Endless()

@mcp_tool(run="thread")
def endless_beside():
    return Endless()

@mcp_tool
async def endless_later():
    return Endless()

@mcp_tool
def add(a: int, b: int) -> int:
    return a + b
"""
TOOLS = (
    *("give", "give_later", "give_beside", "give_data", "give_object", "give_numbers"),
    *("give_list", "show", "fail"),
)


def numpy_values():
    numpy = pytest.importorskip("numpy")
    from hypothesis.extra import numpy as made  # noqa: PLC0415

    dtypes = st.one_of(
        *(made.scalar_dtypes(), made.unicode_string_dtypes(), made.byte_string_dtypes()),
        st.just(numpy.dtype([("a", "i4"), ("b", "U3")])),
    )
    shapes = made.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)
    arrays = made.arrays(dtypes, shapes)
    return arrays | made.arrays(dtypes, ()).map(lambda array: array[()])


def frames(cells):
    pandas = pytest.importorskip("pandas")

    def made(columns, kind):
        shortest = min((len(column) for column in columns.values()), default=0)
        frame = pandas.DataFrame({name: column[:shortest] for name, column in columns.items()})
        if kind == "index" and frame.shape[1]:
            return frame.set_index(frame.columns[0])
        return frame.iloc[:, 0] if kind == "series" and frame.shape[1] else frame

    times = st.datetimes().map(pandas.Timestamp)
    columns = st.one_of(
        *(st.lists(st.floats()), st.lists(st.integers()), st.lists(st.text())),
        *(st.lists(times | st.none()), st.lists(st.booleans()), st.lists(cells, max_size=3)),
        st.lists(st.sampled_from(["a", "b", None])).map(pandas.Categorical),
    )
    tables = st.dictionaries(st.text() | st.integers() | st.none(), columns, max_size=4)
    return st.builds(made, tables, st.sampled_from(["frame", "index", "series"]))


def images():
    pil = pytest.importorskip("PIL.Image")
    modes = st.sampled_from(["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I", "F", "YCbCr", "HSV"])
    sides = st.integers(0, 40) | st.just(2_000)
    return st.builds(
        lambda mode, width, height: pil.new(mode, (width, height)), modes, sides, sides
    )


def values():
    texts = st.one_of(
        *(st.text(), st.text(st.characters(exclude_categories=()))),
        st.text(st.sampled_from("a\x00\x1b[3m\ud800\r\n\t|<>&`")),
        st.integers(0, 60_000).map("x".__mul__),
    )
    scalars = st.one_of(
        *(st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), texts),
        *(
            st.binary(),
            st.decimals(allow_nan=False),
            st.datetimes(),
            st.dates(),
            st.times(),
            st.timedeltas(),
        ),
        *(
            st.uuids(),
            st.fractions(),
            st.ip_addresses(),
            st.sampled_from([4_999, 5_000]).map((10).__pow__),
        ),
    )
    beginnings = st.sampled_from(
        [b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff", b"RIFFxxxxWEBP"]
    )
    pictures = st.builds(bytes.__add__, beginnings, st.binary())
    odd = scalars | pictures | st.sampled_from(["NaN", "sNaN", "-sNaN7"]).map(Decimal)
    names, shares = st.sampled_from([(), "user", ["user", "assistant"]]), st.floats(0, 1)
    blocks = st.one_of(
        *(st.builds(Text, odd, audience=names, priority=shares), st.builds(Image, odd, odd)),
        *(st.builds(Audio, odd, odd), st.builds(Resource, odd, odd, mime_type=odd)),
        st.builds(Link, odd, odd, size=odd),
    )
    leaves = st.one_of(odd, blocks, numpy_values(), images(), frames(odd))
    keys = scalars | st.tuples(scalars, scalars)

    def larger(inner):
        return st.one_of(
            *(st.lists(inner, max_size=5), st.lists(inner, max_size=3).map(tuple)),
            *(st.dictionaries(keys, inner, max_size=5), st.frozensets(scalars, max_size=5)),
            st.builds(Result, inner, structured=inner, is_error=odd, meta=inner),
            st.lists(odd, max_size=3).map(lambda parts: ValueError(*parts)),
        )

    return st.recursive(leaves, larger, max_leaves=12).map(
        lambda value: base64.b64encode(pickle.dumps(value)).decode()
    )


@pytest.fixture(scope="module")
def clients(shared_kernel):
    """Clients of every era, and the portal to the loop that they run on."""
    pytest.importorskip("pandas")
    shared_kernel.ok(SETUP)
    with start_blocking_portal() as portal:
        waits = [
            portal.wrap_async_context_manager(connected(shared_kernel.home, era, "stdio"))
            for era in ERAS
        ]
        with waits[0] as legacy, waits[1] as auto:
            made = dict(zip(ERAS, (legacy, auto), strict=True))
            for client in made.values():
                # The client compares results with the schemas that it has listed.
                portal.call(client.list_tools)

            def call(era, tool, **arguments):
                return portal.call(made[era].call_tool, tool, arguments)

            yield call


def check(call, era, tool, value):
    """Send a value, and see that what comes is a result."""
    result = call(era, tool, value=value)
    assert result.content
    assert all(isinstance(block, BLOCKS) for block in result.content)
    assert len(text_of(result)) <= MOST_CHARS
    assert all(block.text.strip() for block in result.content if isinstance(block, TextContent))
    json.dumps(result.model_dump(mode="json", by_alias=True), allow_nan=False).encode()
    if tool in ("give_object", "give_numbers") and not result.is_error:
        assert result.structured_content is not None
    if tool == "fail":
        assert result.is_error


def check_kernel(call, era):
    """See that the kernel goes on."""
    assert call(era, "add", a=1, b=2).structured_content == structured(3, era)


def test_any_value_becomes_a_valid_result(clients, request):
    @settings(max_examples=request.config.getoption("--any-values"))
    @given(st.sampled_from(ERAS), st.sampled_from(TOOLS), values())
    def sent(era, tool, value):
        check(clients, era, tool, value)
        check_kernel(clients, era)

    sent()


LARGE = {"a million keys"}
"""Odd values that a client reads for half a minute."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name in LARGE)) for name in ODD]
)
def test_an_odd_value_becomes_a_valid_result(clients, name):
    era = ERAS[len(name) % len(ERAS)]
    for tool in ("give", "give_object", "give_later", "fail"):
        check(clients, era, tool, f"odd:{name}")
    check_kernel(clients, era)


@pytest.mark.parametrize("era", ERAS)
def test_an_async_generator_is_collected_and_closed(clients, era):
    assert json.loads(text_of(clients(era, "count", most=3))) == [0, 1, 2]
    text = text_of(clients(era, "count", most=2_000))
    assert "999" in text
    assert "only the first 1,000 items were taken" in text
    closed = clients(era, "were_closed").structured_content
    assert (closed["result"] if era == "legacy" else closed)[-2:] == [3, 2_000]


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["endless", "endless_beside", "endless_later"])
def test_a_repr_that_never_ends_holds_the_kernel_for_five_seconds(clients, shared_kernel, tool):
    result = clients("auto", tool)
    assert not result.is_error
    assert text_of(result) == "[an object of type Endless whose repr took longer than 5 s]"
    assert clients("auto", "add", a=1, b=2).structured_content == 3
    assert shared_kernel.ok("time.sleep(0.01); 6 * 7").displays == [{"text/plain": "42"}]
