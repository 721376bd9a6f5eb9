"""Bokeh plots: found in their pages, and summarized."""

import base64
import gzip
import json
import tracemalloc

import pytest

from mcp_notebook.kernel.results.plots.bokeh import summarize_bokeh
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
