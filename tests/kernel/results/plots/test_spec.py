"""Specifications as JSON: whole, or shortened to a size, even without an end."""

import json
from collections import OrderedDict

import pytest

from mcp_notebook.kernel.results.outputs import Displayed
from mcp_notebook.kernel.results.plots.spec import compact_json, write_json
from mcp_notebook.kernel.safe.to_json import TooDeep, TooLarge

pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")


def itself():
    made = {}
    made |= {"a": made, "data": [made, made], "layout": made}
    return made


def doubled():
    made = [1]
    for _ in range(60):
        made = [made, made]
    return {"data": made}


def deep():
    made = {}
    for _ in range(5_000):
        made = {"data": [made]}
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "make"),
    [
        *(("my", make) for make in (itself, doubled, deep)),
        *(("vegalite.v5", make) for make in (itself, deep)),
        ("plotly.v1", deep),
        pytest.param("vegalite.v5", doubled, marks=pytest.mark.slow),
        pytest.param("plotly.v1", itself, marks=pytest.mark.slow),
        pytest.param("plotly.v1", doubled, marks=pytest.mark.slow),
    ],
)
def test_a_specification_without_an_end_is_still_told(converter, make, kind):
    display = Displayed({f"application/vnd.{kind}+json": make()})
    text = converter.make_result(None, [display]).content[0].text
    assert '"data":[' in text
    assert len(text) < 5_300


@pytest.mark.needs("plotly")
def test_dates_and_missing_numbers_are_told(px, converter, read_original, undrawn):
    frame = pd.DataFrame({"t": pd.date_range("2024", periods=1_000), "y": [1.5, None] * 500})
    text, link = converter.make_result(px.line(frame, x="t", y="y"), ()).content
    assert '"x":["2024-01-01T00:00:00' in text.text
    assert '"y":[1.5,"NaN",1.5' in text.text
    assert len(read_original(link)["data"][0]["x"]) == 1_000


@pytest.mark.parametrize("size", [200, 1_000, 20_000])
def test_a_shortened_specification_keeps_to_the_size_and_both_ends(size):
    text = compact_json({"data": list(range(100_000))}, size)
    assert len(text) <= size
    items = json.loads(text)["data"]
    assert (items[0], items[-1]) == (0, 99_999)
    assert any("items left out" in item for item in items if isinstance(item, str))


def test_a_whole_specification_is_exact():
    spec = {"x": [1 / 3, float("nan")], "y": np.arange(3), 3: OrderedDict(a=1)}
    assert json.loads(write_json(spec)) == {
        "x": [1 / 3, None],
        "y": [0, 1, 2],
        "3": {"a": 1},
    }


def test_a_specification_that_is_too_large_or_endless_is_refused():
    with pytest.raises(TooLarge):
        write_json({"data": [0] * 11}, 10)
    with pytest.raises(TooLarge):
        write_json(doubled(), 100_000)
    with pytest.raises(TooDeep):
        write_json(deep())
