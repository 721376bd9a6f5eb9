"""Plots of libraries that draw in a browser: pictures, or what they are made of; and their whole.

With IPython's real formatters and the real libraries. What draws them is mostly left out, for time.
"""

import base64
import io
import json
import shutil

import pytest
from live import Link, record_of

from mcp_notebook.content import Image, ResourceLink, Text
from mcp_notebook.kernel.results.outputs import Displayed
from mcp_notebook.kernel.results.plots import draw as drawing
from mcp_notebook.kernel.results.plots.detect import find_plot_in_display, find_plot_in_object
from mcp_notebook.kernel.results.plots.renderer import NotDrawn, ProcessRenderer

pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")
PNG_START = b"\x89PNG"


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out what draws."""
    monkeypatch.setattr(drawing, "find_spec", lambda _: None)


@pytest.fixture
def px():
    return pytest.importorskip("plotly.express")


@pytest.fixture
def alt():
    return pytest.importorskip("altair")


def bars(alt, rows=3):
    frame = pd.DataFrame({"a": range(rows), "b": range(rows)})
    return alt.Chart(frame).mark_bar().encode(x="a", y="b")


def whole(store, block):
    assert isinstance(block, ResourceLink)
    content = store.find_format(block.uri).content()
    return json.loads(content) if block.name.endswith(".json") else content


def test_a_chart_is_a_picture_and_its_specification_a_link(alt, converter, store):
    pytest.importorskip("vl_convert")
    picture, link = converter.make_result(bars(alt), ()).content
    assert isinstance(picture, Image)
    assert picture.data.startswith(PNG_START)
    assert (link.name, link.mime_type) == ("chart.json", "application/vnd.vegalite.v6+json")
    assert whole(store, link)["mark"] == {"type": "bar"}


@pytest.mark.parametrize("renderer", ["default", "mimetype", "jupyterlab"])
def test_a_displayed_chart_is_found_whatever_shows_it(alt, formatter, renderer):
    with alt.renderers.enable(renderer):
        data, _ = formatter.format(bars(alt))
    plot = find_plot_in_display(data)
    assert plot.kind == "a Vega-Lite chart"
    assert json.loads(plot.form.content())["encoding"]["x"]["field"] == "a"


def test_a_chart_that_is_not_drawn_says_what_to_install_and_what_it_shows(
    alt, converter, store, undrawn
):
    text, link = converter.make_result(bars(alt, 5_000), ()).content
    assert "`pip install vl-convert-python` makes it a picture" in text.text
    assert '{"a": 4999, "b": 4999}' in text.text
    assert len(text.text) < 5_300
    [rows] = whole(store, link)["datasets"].values()
    assert len(rows) == 5_000


def test_the_data_of_a_chart_is_not_fetched(alt, converter):
    chart = alt.Chart("http://127.0.0.1:9/x.csv").mark_bar().encode(x="a:Q")
    for made in (chart, chart | chart, chart + chart):
        text = converter.make_result(made, ()).content[0].text
        assert "its data is at 'http://127.0.0.1:9/x.csv', which is not fetched" in text


def test_a_chart_that_altair_refuses_says_why(alt, converter):
    text = converter.make_result(bars(alt, 6_000), ()).content[0].text
    assert text.startswith("[A altair.Chart cannot be shown: MaxRowsError: The number of rows")


def test_a_figure_that_is_not_drawn_says_what_to_install_and_what_it_shows(
    px, converter, store, undrawn
):
    figure = px.scatter(x=np.arange(100_000), y=np.linspace(0, 1, 100_000), title="Growth")
    text, link = converter.make_result(figure, ()).content
    assert text.text.startswith(
        "[a plotly figure, not drawn here: `pip install -U kaleido` and Chrome make it a picture."
    )
    for part in ('"x": [0, 1, 2, ', "99999]", "Growth", "of 100,000 items left out"):
        assert part in text.text
    for noise in ("template", "hovertemplate", "bdata", "uid"):
        assert noise not in text.text
    assert len(text.text) < 5_300
    assert (link.name, link.mime_type) == ("figure.json", "application/vnd.plotly.v1+json")
    assert "template" in whole(store, link)["layout"]


def test_figures_stay_in_their_place_among_other_values(px, converter, undrawn):
    figures = {"first": px.line(y=[1, 2]), "second": px.line(y=[3, 4])}
    made = [b for b in converter.make_result(figures, ()).content if isinstance(b, Text)]
    assert [block.text.partition(":")[0] for block in made] == ["first", "second"]
    assert "[3, 4]" in made[1].text


@pytest.mark.parametrize("renderer", ["plotly_mimetype", "notebook_connected", "colab", "iframe"])
def test_a_shown_figure_is_found_whatever_shows_it(px, renderer, tmp_path, monkeypatch):
    io = pytest.importorskip("plotly.io")
    monkeypatch.chdir(tmp_path)
    bundle = io.renderers._build_mime_bundle(px.line(y=[1, 2]).to_dict(), renderer)
    plot = find_plot_in_display(bundle)
    if renderer == "iframe":  # a file beside the notebook
        assert plot is None
    else:
        assert "[1, 2]" in plot.summarize(1_000)


def test_a_figure_in_html_of_its_own_is_found(px):
    plot = find_plot_in_display({"text/html": px.line(y=[1, 2], title="t").to_html()})
    assert plot.kind == "a plotly figure"
    assert "[1, 2]" in plot.summarize(1_000)


def test_a_figure_is_drawn_by_kaleido(px, converter):
    pytest.importorskip("kaleido")
    browsers = ("google-chrome", "chromium", "chromium-browser", "chrome")
    if not any(map(shutil.which, browsers)):
        pytest.skip("kaleido needs Chrome")
    first, link = converter.make_result(px.line(y=[1, 2], width=300, height=200), ()).content
    assert isinstance(link, ResourceLink)
    if isinstance(first, Text):  # a machine too busy to start a browser in time
        assert "did not draw it within" in first.text
    else:
        assert first.data.startswith(PNG_START)


def test_kaleido_without_chrome_says_so_at_once(px, monkeypatch):
    pytest.importorskip("kaleido")
    monkeypatch.setenv("BROWSER_PATH", "/nonexistent/chrome")
    with pytest.raises(NotDrawn, match=r"kaleido failed: ChromeNotFoundError: No browser found"):
        drawing.draw_plotly(px.line(y=[1]).to_dict(), 500, ProcessRenderer())


def test_what_the_user_registered_for_a_figure_wins(px, formatter, converter):
    figure = px.line(y=[1, 2])
    formatter.formatters["text/markdown"].for_type(type(figure), lambda _: "**mine**")
    [block] = converter.make_result(figure, ()).content
    assert block.text == "**mine**"


def test_a_mimebundle_that_the_user_registered_wins_too(alt, formatter, converter):
    chart = bars(alt)
    formatter.mimebundle_formatter.for_type(
        type(chart), lambda *_, **__: ({"text/markdown": "*mine*"}, {})
    )
    [block] = converter.make_result(chart, ()).content
    assert block.text == "*mine*"


@pytest.mark.parametrize("language", ["vega", "vega-lite"])
@pytest.mark.parametrize("at", ["file://{}", "{}", "http://127.0.0.1:9/red.png", "data:{}"])
def test_a_picture_within_a_chart_is_drawn_only_if_it_is_in_the_chart_itself(
    converter, tmp_path, language, at
):
    pytest.importorskip("vl_convert")
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "red.png"
    image.new("RGB", (8, 8), (255, 0, 0)).save(path)
    encoded = f"image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
    address = at.format(encoded if at.startswith("data:") else path)
    size = {"width": 50, "height": 50}
    spec = {"$schema": f"https://vega.github.io/schema/{language}/v5.json", **size}
    if language == "vega":
        at_start = {key: {"value": value} for key, value in {"url": address, **size}.items()}
        spec |= {"marks": [{"type": "image", "encode": {"enter": at_start}}]}
    else:
        spec |= {"data": {"values": [{"u": address}]}, "mark": {"type": "image", **size}}
        spec |= {"encoding": {"url": {"field": "u", "type": "nominal"}}}
    kind = f"application/vnd.{language.replace('-', '')}.v5+json"
    first = converter.make_result(None, [Displayed({kind: spec})]).content[0]
    if at.startswith("data:"):
        drawn = image.open(io.BytesIO(first.data)).convert("RGB")
        assert (255, 0, 0) in {colour for _, colour in drawn.getcolors(1_000_000)}
    else:
        assert "it has a picture at" in first.text
        assert "which is not read" in first.text


def test_a_plotly_figure_with_a_picture_elsewhere_is_not_drawn(converter):
    go = pytest.importorskip("plotly.graph_objects")
    figure = go.Figure()
    figure.add_layout_image(source="file:///etc/hostname", x=0, y=1)
    first = converter.make_result(figure, ()).content[0]
    assert "it has a picture at 'file:///etc/hostname', which is not read" in first.text


@pytest.fixture
def bokeh_figure():
    plotting = pytest.importorskip("bokeh.plotting")
    figure = plotting.figure(title="Speed", x_axis_label="time")
    figure.line(np.arange(1_000), np.arange(1_000) / 2, legend_label="fast")
    figure.scatter([1, 2], [3, 4])
    return figure


def check_bokeh(plot):
    shown = json.loads(plot.summarize(20_000))
    assert (shown["titles"], shown["axes"], shown["legend"]) == (["Speed"], ["time"], ["fast"])
    line, dots = shown["series"]
    assert (line["glyph"], line["data"]["y"][:3]) == ("Line", [0.0, 0.5, 1.0])
    assert dots == {"glyph": "Scatter", "x": "x", "y": "y", "data": {"x": [1, 2], "y": [3, 4]}}


def test_a_bokeh_plot_says_what_it_is_made_of(bokeh_figure, converter, store):
    text, link = converter.make_result(bokeh_figure, ()).content
    assert "get_screenshot_as_png" in text.text
    assert whole(store, link)["name"] == "Figure"
    check_bokeh(find_plot_in_object(bokeh_figure))


def test_a_shown_bokeh_plot_is_found_in_its_script(bokeh_figure):
    embed = pytest.importorskip("bokeh.embed")
    script, _ = embed.components(bokeh_figure)
    # `components` has its document in quotes; `show` in a notebook has it bare.
    document = json.dumps(embed.json_item(bokeh_figure)["doc"])
    bare = f'(function(root) {{ const docs_json = {{"id": {document}}}; }})'
    for plot in (
        find_plot_in_display({"application/javascript": bare}),
        find_plot_in_display({"text/html": bare}),
    ):
        check_bokeh(plot)
    assert script


def test_a_map_says_where_it_is_and_what_is_on_it(converter, store):
    folium = pytest.importorskip("folium")
    world = folium.Map(location=[45.5, -122.6], zoom_start=12)
    folium.Marker([45.1, -122.2], popup="Mt. <b>Hood</b>").add_to(world)
    folium.CircleMarker([45.2, -122.3]).add_to(world)
    text, link = converter.make_result(world, ()).content
    head, _, shown = text.text.partition(":]\n")
    assert head.startswith("[a folium map, not drawn here")
    assert json.loads(shown) == {
        "center": [45.5, -122.6],
        "zoom": 12,
        "counts": {"marker": 1, "circleMarker": 1},
        "marker": [[45.1, -122.2]],
        "circleMarker": [[45.2, -122.3]],
        "popups": ["Mt. Hood"],
    }
    assert link.mime_type == "text/html"
    assert "L.map(" in whole(store, link)


def test_a_graph_is_its_source_where_dot_is_missing(converter, store, monkeypatch):
    graphviz = pytest.importorskip("graphviz")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    graph = graphviz.Digraph()
    graph.edge("a", "b")
    for value in (graph, graphviz.Source(graph.source)):
        text, link = converter.make_result(value, ()).content
        assert "\ta -> b\n" in text.text
        assert whole(store, link) == graph.source


def test_a_graph_is_a_picture_where_dot_is_there(converter):
    graphviz = pytest.importorskip("graphviz")
    pytest.importorskip("vl_convert")
    if shutil.which("dot") is None:
        pytest.skip("the program dot is missing")
    picture, link = converter.make_result(graphviz.Source("digraph { a -> b }"), ()).content
    assert isinstance(picture, Image)
    assert link.mime_type == "image/svg+xml"


@pytest.mark.parametrize(
    "data",
    [
        {"application/vnd.plotly.v1+json": "no JSON"},
        {"application/vnd.plotly.v1+json": 3, "text/plain": "x"},
        {"text/html": "vega })({ broken", "text/plain": "x"},
        {"text/html": 'Plotly.newPlot("a", [broken', "text/plain": "x"},
        {"text/html": "docs_json = {broken", "text/plain": "x"},
        {"text/html": '<iframe srcdoc="L.map"></iframe>', "text/plain": "x"},
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


def test_the_template_of_a_figure_gives_its_size():
    figure = {"layout": {"height": 100, "template": {"layout": {"width": 900, "height": 5}}}}
    assert drawing._plotly_size(figure) == (900, 100)
    assert drawing._plotly_size({}) == (700, 500)


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
from mcp_notebook.kernel.results.plots import draw as drawing

drawing.find_spec = lambda name: None  # nothing is drawn: browsers take seconds

@mcp_tool
def show():
    px.line(y=[1, 2], title="shown").show()
    display(alt.Chart(pd.DataFrame({"a": [1]})).mark_point().encode(x="a"))
    handle = display(Markdown("*old*"), display_id="here")
    handle.update(Markdown("*new*"))
    return px.line(y=[3, 4], title="returned")
"""


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
    assert '"mark": {"type": "point"}' in texts[1]
    assert texts[2] == "*new*"
    assert "returned" in texts[3]


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


@pytest.mark.parametrize("make", [itself, doubled, deep])
@pytest.mark.parametrize("kind", ["plotly.v1", "vegalite.v5", "my"])
def test_a_specification_without_an_end_is_still_told(converter, make, kind):
    display = Displayed({f"application/vnd.{kind}+json": make()})
    text = converter.make_result(None, [display]).content[0].text
    assert '"data": [' in text
    assert len(text) < 5_300


def test_dates_and_missing_numbers_are_told(px, converter, store, undrawn):
    frame = pd.DataFrame({"t": pd.date_range("2024", periods=1_000), "y": [1.5, None] * 500})
    text, link = converter.make_result(px.line(frame, x="t", y="y"), ()).content
    assert '"x": ["2024-01-01T00:00:00' in text.text
    assert '"y": [1.5, "NaN", 1.5' in text.text
    assert len(whole(store, link)["data"][0]["x"]) == 1_000


def test_a_heat_map_keeps_to_the_size(px, undrawn):
    plot = find_plot_in_object(px.imshow(np.arange(1_000_000).reshape(1_000, 1_000)))
    assert '"... 980 of 1,000 items left out ..."' in plot.summarize(5_000)
