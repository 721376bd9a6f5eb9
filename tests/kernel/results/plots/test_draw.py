"""Drawing plotly figures and Vega charts: what is refused, what is missing, how large it gets."""

import base64
import io
import shutil

import pytest

from mcp_notebook.content import ResourceLink, Text
from mcp_notebook.kernel.results.outputs import Displayed
from mcp_notebook.kernel.results.plots import draw
from mcp_notebook.kernel.results.plots.renderer import NotDrawn

PNG_START = b"\x89PNG"


@pytest.mark.needs("plotly")
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


@pytest.mark.needs("plotly")
def test_kaleido_without_chrome_says_so_at_once(px, monkeypatch):
    pytest.importorskip("kaleido")
    monkeypatch.setenv("BROWSER_PATH", "/nonexistent/chrome")
    with pytest.raises(NotDrawn, match=r"kaleido failed: ChromeNotFoundError: No browser found"):
        draw.draw_plotly(px.line(y=[1]).to_dict(), 500)


@pytest.mark.needs("altair")
def test_the_data_of_a_chart_is_not_fetched(alt, converter):
    chart = alt.Chart("http://127.0.0.1:9/x.csv").mark_bar().encode(x="a:Q")
    for made in (chart, chart | chart, chart + chart):
        text = converter.make_result(made, ()).content[0].text
        assert "its data is at 'http://127.0.0.1:9/x.csv', which is not fetched" in text


@pytest.mark.needs("vl_convert")
@pytest.mark.parametrize("language", ["vega-lite", pytest.param("vega", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "at",
    [
        *("file://{}", "data:{}"),
        *(pytest.param(at, marks=pytest.mark.slow) for at in ("{}", "http://127.0.0.1:9/red.png")),
    ],
)
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


@pytest.mark.needs("plotly")
def test_a_plotly_figure_with_a_picture_elsewhere_is_not_drawn(converter):
    go = pytest.importorskip("plotly.graph_objects")
    figure = go.Figure()
    figure.add_layout_image(source="file:///etc/hostname", x=0, y=1)
    first = converter.make_result(figure, ()).content[0]
    assert "it has a picture at 'file:///etc/hostname', which is not read" in first.text


def test_the_template_of_a_figure_gives_its_size():
    figure = {"layout": {"height": 100, "template": {"layout": {"width": 900, "height": 5}}}}
    assert draw._get_plotly_size(figure) == (900, 100)
    assert draw._get_plotly_size({}) == (700, 500)
