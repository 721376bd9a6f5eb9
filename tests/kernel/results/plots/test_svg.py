"""SVG as pictures; nothing is fetched or read for one."""

import io

import pytest

from mcp_notebook.kernel.results.plots import svg
from mcp_notebook.kernel.results.plots.renderer import NotDrawn

SECRET = (0, 255, 0)


def drawing(inside="", attributes='width="100" height="50"'):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        f" {attributes}>{inside}</svg>"
    )


def opened(data):
    image = pytest.importorskip("PIL.Image")
    return image.open(io.BytesIO(data)).convert("RGB")


@pytest.fixture
def by_vl_convert():
    pytest.importorskip("vl_convert")


@pytest.mark.needs("vl_convert")
def test_a_small_drawing_is_enlarged_and_a_large_one_keeps_to_the_budget(by_vl_convert):
    assert opened(svg.draw_svg(drawing(), 1_000)).size == (200, 100)
    huge = drawing(attributes='width="100000" height="50000"')
    assert opened(svg.draw_svg(huge, 600)).size == (600, 300)


@pytest.mark.needs("vl_convert")
@pytest.mark.parametrize(
    "inside",
    [
        '<image href="/etc/passwd"/>',
        '<image xlink:href="http://127.0.0.1:9/x.png"/>',
        '<style>@import url("http://127.0.0.1:9/x.css");</style>',
        "<style>rect { fill: url('http://127.0.0.1:9/x.svg#a') }</style>",
        r"<style>rect { fill: \75rl(http://127.0.0.1:9/x.svg#a) }</style>",
        '<image href="data:image/svg+xml;base64,PHN2Zy8+"/>',
        '<use href="other.svg#a"/>',
        '<g id="a"><use href="#a"/></g>',
        '<mask id="a"><rect fill="url(#b)"/></mask><pattern id="b"><use href="#a"/></pattern>',
        '<rect fill="red"><set href="other.svg#a"/></rect>',
    ],
)
def test_vl_convert_is_not_given_what_refers_to_something(by_vl_convert, inside):
    with pytest.raises(NotDrawn, match=r"it refers to|its style sheet refers to"):
        svg.draw_svg(drawing(inside), 1_000)


GREEN = '<rect width="100" height="50" fill="#0f0"/>'


@pytest.mark.needs("vl_convert")
@pytest.mark.parametrize(
    "inside",
    [
        '<defs><rect id="a" width="100" height="50" fill="#0f0"/></defs><use xlink:href="#a"/>',
        '<style>rect { fill: #0f0 }</style><rect width="100" height="50"/>',
        f"<script>alert(1)</script>{GREEN}",
        f'<clipPath id="c">{GREEN}</clipPath><g clip-path="url(#c)">{GREEN}</g>',
        f'<a id="a" href="#a">{GREEN}</a>',
    ],
)
def test_vl_convert_draws_what_refers_only_to_itself(by_vl_convert, inside):
    drawn = opened(svg.draw_svg(drawing(inside), 1_000))
    assert drawn.getpixel((50, 25)) == SECRET


@pytest.mark.needs("vl_convert")
def test_vl_convert_draws_the_drawings_of_matplotlib(by_vl_convert):
    plt = pytest.importorskip("matplotlib.figure")
    figure, file = plt.Figure(), io.StringIO()
    axes = figure.add_subplot()
    axes.scatter(range(50), range(50), color="#00ff00", s=200)
    axes.imshow([[0, 1], [1, 0]], aspect="auto")  # a picture within the drawing
    figure.savefig(file, format="svg")
    drawn = opened(svg.draw_svg(file.getvalue(), 1_000))
    assert SECRET in {colour for _, colour in drawn.getcolors(10**6)}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg>&x;</svg>', "entities"),
        ("<svg", "not a well-formed SVG"),
        ("", "not a well-formed SVG"),
        ("<html/>", "not an SVG but <html>"),
        ("<svg>" + " " * svg.MAX_DRAWN + "</svg>", "more than 5,000,000 characters"),
    ],
)
def test_only_harmless_svg_is_drawn(source, message):
    with pytest.raises(NotDrawn, match=message):
        svg.draw_svg(source, 1_000)


@pytest.mark.parametrize(
    ("attributes", "side"),
    [
        ('width="2in" height="1in"', 192),
        ('viewBox="0 0 40 20"', 40),
        ('viewBox="0,0,40,20" width="100%"', 40),
        ('viewBox="0 0 40 20" width="80"', 80),
        ('width="nan" height="inf" viewBox="a b c d"', 300),
        ("", 300),
    ],
)
def test_the_longer_side_of_a_drawing(attributes, side):
    assert svg._get_longest_side(svg._parse(drawing(attributes=attributes))) == side


def test_the_texts_of_a_drawing_are_told_once_each():
    inside = "<title>Sales</title><text>EU <tspan>1</tspan></text><text>EU 1</text><g><text/></g>"
    assert svg.extract_texts(drawing(inside)) == "Sales\nEU 1"
    assert svg.extract_texts("no SVG") == ""


def test_a_text_within_texts_is_told_once():
    """Ten thousand of them would be told fifty million times."""
    inside = "<text>a" * 10_000 + "</text>" * 10_000
    assert svg.extract_texts(drawing(inside)) == "a" * 10_000


MILLIONS = '<g id="g0"><rect width="1" height="1"/></g>' + "".join(
    f'<g id="g{n}">' + f'<use href="#g{n - 1}"/>' * 10 + "</g>" for n in range(1, 9)
)


def test_no_part_is_drawn_a_million_times():
    with pytest.raises(NotDrawn, match="it draws more than 200,000 parts"):
        svg.draw_svg(drawing(MILLIONS), 1_000)
