"""Bokeh plots and folium maps: found in their pages, and summarized."""

import base64
import gzip
import html
import io
import json
import tracemalloc

import pytest

from mcp_notebook.kernel.results.plots.bokeh_folium import summarize_bokeh
from mcp_notebook.kernel.results.plots.detect import find_plot_in_display, find_plot_in_object

np = pytest.importorskip("numpy")


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


@pytest.mark.needs("bokeh")
def test_a_bokeh_plot_says_what_it_is_made_of(bokeh_figure, converter, read_original):
    text, link = converter.make_result(bokeh_figure, ()).content
    assert "get_screenshot_as_png" in text.text
    assert read_original(link)["name"] == "Figure"
    check_bokeh(find_plot_in_object(bokeh_figure))


@pytest.mark.needs("bokeh")
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


@pytest.mark.needs("bokeh")
def test_a_page_of_bokeh_with_a_picture_in_its_markup_is_that_picture(converter, read_original):
    embed = pytest.importorskip("bokeh.embed")
    models = pytest.importorskip("bokeh.models")
    png = base64.b64encode(pil_png()).decode()
    # As panel writes the plots of holoviews with matplotlib, beside their sliders.
    picture = models.Div(text=html.escape(f"<img src='data:image/png;base64,{png}'></img>"))
    slider = models.Slider(start=0, end=2, value=0)
    document = json.dumps(embed.json_item(models.Row(picture, slider))["doc"])
    script = f'<script>(function(root) {{ var docs_json = {{"id": {document}}}; }})</script>'
    data = {"text/html": script, "text/plain": ":HoloMap [i]"}
    text, image, link = converter.make_result(Shown(data), ()).content
    assert text.text == "[This is the picture that the page shows first.]"
    assert image.data == pil_png()
    assert "Slider" in json.dumps(read_original(link))


class Shown:
    def __init__(self, data):
        self.data = data

    def _repr_mimebundle_(self, **_):
        return self.data


def pil_png():
    pil = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    pil.new("RGB", (5, 5), "red").save(file, "PNG")
    return file.getvalue()


@pytest.mark.needs("folium")
def test_a_map_says_where_it_is_and_what_is_on_it(converter, read_original):
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
    assert "L.map(" in read_original(link)


def test_a_value_other_than_a_number_in_a_map_is_left_out():
    page = "L.map(x, {center: [1-1, 2], zoom: 3}) L.marker([1, .-]) L.circle([-1.5e0, 2.])"
    found = find_plot_in_display({"text/html": page})
    assert json.loads(found.summarize(1_000)) == {
        "zoom": 3,
        "counts": {"circle": 1},
        "circle": [[-1.5, 2.0]],
    }


@pytest.mark.slow
def test_arrays_that_would_unpack_to_gigabytes_are_left_out():
    def pack(array):
        return {
            "type": "ndarray",
            "array": {"type": "bytes", "data": base64.b64encode(gzip.compress(array)).decode()},
            "dtype": "uint8",
            "shape": [len(array)],
        }

    bomb = pack(bytes(100 * 2**20))
    data = {"entries": [["bomb", bomb], ["x", pack(bytes(range(3)))]]}
    source = {"attributes": {"data": data}}
    series = {
        "type": "object",
        "name": "GlyphRenderer",
        "id": "g",
        "attributes": {"glyph": {"name": "Line"}, "data_source": source},
    }
    tracemalloc.start()
    (shown,) = summarize_bokeh([series] * 20)["series"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200 * 2**20
    assert shown["data"]["bomb"]["bdata"] == ""
    assert shown["data"]["x"]["bdata"] == "AAEC"


@pytest.mark.needs("bokeh")
def test_a_page_of_bokeh_says_its_texts_tables_and_widgets(converter):
    models = pytest.importorskip("bokeh.models")
    data = models.ColumnDataSource({"city": ["Rome", "Oslo"], "mm": [1, 2]})
    columns = [models.TableColumn(field="city", title="city")]
    page = models.Column(
        models.Div(text="<h1>Rain &amp; snow</h1>"),
        models.DataTable(source=data, columns=columns),
        models.Slider(title="year", start=2000, end=2030, value=2020),
    )
    text = converter.make_result(page, ()).content[0].text
    assert text.startswith("[a page of bokeh or panel, not drawn here: only a browser shows it.")
    assert '"texts":["Rain & snow"]' in text
    assert '"tables":[{"city":["Rome","Oslo"],"mm":[1,2]}]' in text
    assert '"widgets":{"year":2020}' in text


@pytest.mark.needs("bokeh")
def test_a_page_of_bokeh_that_says_nothing_names_what_is_in_it(converter):
    models = pytest.importorskip("bokeh.models")
    text = converter.make_result(models.Row(models.Spacer()), ()).content[0].text
    assert text.endswith('{"models":["Row","Spacer"]}')
