"""Plots of libraries that draw in a browser: pictures, or what they are made of; and their whole.

With IPython's real formatters and the real libraries. What draws them is mostly left out, for time.
"""

import json

import pytest
from live import Link, record_of

from mcp_notebook.content import Image, ResourceLink, Text
from mcp_notebook.kernel.results.outputs import Displayed
from mcp_notebook.kernel.results.plots.detect import find_plot_in_display

pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")
PNG_START = b"\x89PNG"


def bars(alt, rows=3):
    frame = pd.DataFrame({"a": range(rows), "b": range(rows)})
    return alt.Chart(frame).mark_bar().encode(x="a", y="b")


@pytest.mark.needs("altair", "vl_convert")
def test_a_chart_is_a_picture_and_its_specification_a_link(alt, converter, read_original):
    pytest.importorskip("vl_convert")
    picture, link = converter.make_result(bars(alt), ()).content
    assert isinstance(picture, Image)
    assert picture.data.startswith(PNG_START)
    assert link.name == "chart.json"
    version = alt.SCHEMA_VERSION.partition(".")[0]
    assert link.mime_type == f"application/vnd.vegalite.{version}+json"
    assert read_original(link)["mark"] == {"type": "bar"}


@pytest.mark.needs("altair")
@pytest.mark.parametrize("renderer", ["default", "mimetype", "jupyterlab"])
def test_a_displayed_chart_is_found_whatever_shows_it(alt, formatter, renderer):
    with alt.renderers.enable(renderer):
        data, _ = formatter.format(bars(alt))
    plot = find_plot_in_display(data)
    assert plot.kind == "a Vega-Lite chart"
    assert json.loads(plot.original.formats[0].content())["encoding"]["x"]["field"] == "a"


@pytest.mark.needs("altair")
def test_a_chart_that_is_not_drawn_says_what_to_install_and_what_it_shows(
    alt, converter, read_original, undrawn
):
    text, link = converter.make_result(bars(alt, 5_000), ()).content
    assert "`pip install vl-convert-python` draws it" in text.text
    assert '{"a":4999,"b":4999}' in text.text
    assert len(text.text) < 5_300
    [rows] = read_original(link)["datasets"].values()
    assert len(rows) == 5_000


@pytest.mark.needs("plotly")
def test_a_figure_that_is_not_drawn_says_what_to_install_and_what_it_shows(
    px, converter, read_original, undrawn
):
    figure = px.scatter(x=np.arange(100_000), y=np.linspace(0, 1, 100_000), title="Growth")
    text, link = converter.make_result(figure, ()).content
    assert text.text.startswith(
        "[a plotly figure, not drawn here: `pip install -U kaleido` and Chrome draw it."
    )
    for part in ('"x":[0,1,2,', "99999]", "Growth", "of 100,000 items left out"):
        assert part in text.text
    for noise in ("template", "hovertemplate", "bdata", "uid"):
        assert noise not in text.text
    assert len(text.text) < 5_300
    assert (link.name, link.mime_type) == ("figure.json", "application/vnd.plotly.v1+json")
    assert "template" in read_original(link)["layout"]


@pytest.mark.needs("plotly")
@pytest.mark.parametrize("renderer", ["plotly_mimetype", "notebook_connected", "colab", "iframe"])
def test_a_shown_figure_is_found_whatever_shows_it(px, renderer, tmp_path, monkeypatch):
    io = pytest.importorskip("plotly.io")
    monkeypatch.chdir(tmp_path)
    bundle = io.renderers._build_mime_bundle(px.line(y=[1, 2]).to_dict(), renderer)
    plot = find_plot_in_display(bundle)
    if renderer == "iframe":  # a file beside the notebook
        assert plot is None
    else:
        assert "[1,2]" in plot.summarize(1_000)


@pytest.mark.needs("plotly")
def test_what_the_user_registered_for_a_figure_wins(px, formatter, converter):
    figure = px.line(y=[1, 2])
    formatter.formatters["text/markdown"].for_type(type(figure), lambda _: "**mine**")
    [block] = converter.make_result(figure, ()).content
    assert block.text == "**mine**"


@pytest.mark.parametrize(
    "data",
    [
        {"application/vnd.plotly.v1+json": "no JSON"},
        {"application/vnd.plotly.v1+json": 3, "text/plain": "x"},
        {"text/html": "vega })({ broken", "text/plain": "x"},
        {"text/html": 'Plotly.newPlot("a", [broken', "text/plain": "x"},
        {"text/html": "docs_json = {broken", "text/plain": "x"},
        {"text/html": '<iframe srcdoc="L.map"></iframe>', "text/plain": "x"},
        {"text/html": "vega })(" + '{"a":' * 100_000},
        {"text/html": "docs_json = " + '{"a":' * 100_000},
        {"text/html": 'vega })({"a": ' + "1" * 5_000},
        {"text/html": "Plotly.newPlot('a', [],"},
        {"application/vnd.plotly.v1+json": '{"a":' * 100_000},
    ],
)
def test_what_only_looks_like_a_plot_is_none(data):
    assert find_plot_in_display(data) is None


@pytest.mark.parametrize(
    "spec",
    [
        {"data": 3, "layout": []},
        {"layout": {"template": "x", "width": "wide", "height": -1}},
        {"data": [{"x": {"bdata": "!", "dtype": "f8"}, "y": {"bdata": "AAAA", "dtype": "zz"}}]},
        {"data": [{"x": [float("nan")], "y": {"bdata": "AAA=", "dtype": "O"}}], 3: {None: ()}},
    ],
)
def test_a_broken_figure_is_still_told(converter, spec, undrawn):
    shown = converter.make_result(
        None, [Displayed({"application/vnd.plotly.v1+json": spec})]
    ).content
    assert shown[0].text.startswith("[a plotly figure, not drawn here")


@pytest.mark.needs("plotly")
def test_a_figure_that_fails_in_its_own_code_is_a_sentence(px, converter, monkeypatch):
    figure = px.line(y=[1])
    monkeypatch.setattr(type(figure), "to_dict", lambda _: 1 / 0)
    [block] = converter.make_result(figure, ()).content
    assert "plotly.Figure cannot be shown: ZeroDivisionError" in block.text


TOOLS = """
import sys
from mcp_notebook import mcp_tool
import plotly.express as px
import altair as alt
import pandas as pd
from IPython.display import display, update_display, Markdown
from mcp_notebook.kernel.results.plots import draw

draw.find_spec = lambda name: None  # nothing is drawn: browsers take seconds

@mcp_tool
def show():
    px.line(y=[1, 2], title="shown").show()
    display(alt.Chart(pd.DataFrame({"a": [1]})).mark_point().encode(x="a"))
    handle = display(Markdown("*old*"), display_id="here")
    handle.update(Markdown("*new*"))
    return px.line(y=[3, 4], title="returned")
"""


@pytest.mark.needs("altair", "plotly")
def test_plots_that_a_call_shows_and_returns_come_in_order(shared_kernel):
    pytest.importorskip("plotly")
    pytest.importorskip("altair")
    shared_kernel.ok(TOOLS)
    with Link(record_of(shared_kernel)) as link:
        result = link.call("show")
    names = [block.name if isinstance(block, ResourceLink) else "text" for block in result.content]
    assert names == ["text", "figure.json", "text", "chart.json", "text", "text", "figure.json"]
    texts = [block.text for block in result.content if isinstance(block, Text)]
    assert "shown" in texts[0]
    assert '"mark":{"type":"point"}' in texts[1]
    assert texts[2] == "*new*"
    assert "returned" in texts[3]
