"""Which of a display's MIME types a model gets, and what becomes of it."""

import base64
import io
import json
import subprocess
import sys
import wave
from itertools import combinations
from pathlib import Path

import PIL.Image
import pytest
from IPython import display

from mcp_notebook.content import Audio, Image, ResourceLink
from mcp_notebook.kernel.results import displays as bundles
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.displays import render_mime_bundle
from mcp_notebook.kernel.results.outputs import Displayed
from mcp_notebook.kernel.results.plots import draw as drawing
from mcp_notebook.kernel.results.plots import svg

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="50"><text y="20">hi</text></svg>'


@pytest.fixture
def budget(store):
    return Budget(keep=store.keep)


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out what draws."""
    monkeypatch.setattr(svg, "find_spec", lambda _: None)
    monkeypatch.setattr(drawing, "find_spec", lambda _: None)


def blocks_of(data, budget):
    return [piece.block for piece in render_mime_bundle(data, budget)]


def only_text(blocks):
    [block] = blocks
    return block.text


ORDERED = {
    "image/png": (PNG, None),
    "application/vnd.plotly.v1+json": ({"data": []}, "a plotly figure"),
    "text/markdown": ("**a**", "**a**"),
    "application/json": ({"a": 1}, '{"a":1}'),
    "text/latex": ("$x$", "$x$"),
    "image/svg+xml": (SVG, SVG),
    "text/plain": ("a plain text", "a plain text"),
    "text/html": ("<b>some html</b>", "some html"),
    "application/geo+json": ({"type": "Point"}, '{"type":"Point"}'),
    "application/javascript": ("alert(1)", "JavaScript"),
}


@pytest.mark.parametrize("pair", list(combinations(ORDERED, 2)), ids=" or ".join)
def test_the_first_of_the_table_is_taken(budget, undrawn, pair):
    wanted = "text/latex" if set(pair) == {"image/png", "text/latex"} else pair[0]
    # The order in which a library gives them says nothing.
    data = {kind: ORDERED[kind][0] for kind in reversed(pair)}
    first = blocks_of(data, budget)[0]
    if wanted == "image/png":
        assert isinstance(first, Image)
    else:
        assert ORDERED[wanted][1] in first.text


def test_the_table_of_the_docstring_has_all_of_them_in_order():
    rows = [line.split() for line in bundles.__doc__.splitlines() if line[:2].strip().isdigit()]
    told = [row[1].removesuffix(",") for row in rows[1:]]  # the first row is the exception
    of_one = [kind.replace(".v1+json", "...").replace("geo+json", "...+json") for kind in ORDERED]
    assert [kind for kind in told if kind in of_one][: len(of_one)] == of_one


@pytest.mark.parametrize(
    "name",
    [
        *("<Foo object at 0x7f00>", "<a.b.Foo at 0x7f00>", "<IPython.core.display.HTML object>"),
        *("<__main__.f.<locals>.Loc at 0x7f00>", "<__main__.f.<locals>.Loc object at 0x7f00>"),
        "<class 'statsmodels.iolib.table.SimpleTable'>",
    ],
)
def test_a_text_that_is_only_a_name_says_less_than_html(budget, name):
    assert only_text(blocks_of({"text/plain": name, "text/html": "<p>x</p>"}, budget)) == "x"
    assert only_text(blocks_of({"text/plain": name}, budget)) == name


def test_html_with_a_picture_in_it_is_that_picture_whatever_its_text_says(budget):
    image = PIL.Image.effect_noise((64, 64), 50)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    encoded = base64.b64encode(buffer.getvalue()).decode()
    data = {
        "text/plain": ":Curve [x] (y)",
        "text/html": f"<img src='data:image/png;base64,{encoded}'/>",
    }
    [block] = blocks_of(data, budget)
    assert block.data == buffer.getvalue()


@pytest.mark.slow
@pytest.mark.needs("sympy")
def test_a_formula_is_latex_and_text(converter):
    sympy = pytest.importorskip("sympy")
    x = sympy.symbols("x")
    made = only_text(converter.make_result(sympy.Integral(x**2, x), ()).content)
    assert made == "$\\displaystyle \\int x^{2}\\, dx$\n\nIntegral(x**2, x)"


@pytest.mark.needs("vl_convert")
def test_an_svg_is_a_picture_and_a_link(converter, store):
    pytest.importorskip("vl_convert")
    picture, link = converter.make_result(display.SVG(SVG), ()).content
    assert isinstance(picture, Image)
    assert (link.name, link.mime_type) == ("picture.svg", "image/svg+xml")
    assert "<text" in store.find_format(link.uri).content()


def test_a_long_svg_that_is_not_drawn_is_its_texts_and_a_link(budget, store, undrawn):
    rectangles = "<rect/>" * 2_000
    source = SVG.replace("</svg>", f"{rectangles}</svg>")
    text, link = blocks_of({"image/svg+xml": source}, budget)
    assert "`pip install vl-convert-python` draws it" in text.text
    assert text.text.endswith("Its texts:]\nhi")
    assert store.find_format(link.uri).content() == source


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            display.IFrame("https://example.org/a?b=1&c=2", 300, 200),
            "[a page within the page, which is not fetched: https://example.org/a?b=1&c=2]",
        ),
        (
            display.YouTubeVideo("abc"),
            "[a page within the page, which is not fetched: https://www.youtube.com/embed/abc]",
        ),
        (
            display.Video("https://example.org/a.mp4"),
            "[a video, which is not fetched: https://example.org/a.mp4]",
        ),
        (
            display.Audio(url="https://example.org/a.wav"),
            "[a sound, which is not fetched: https://example.org/a.wav]",
        ),
        (display.Javascript("alert(1)"), "[JavaScript, which only a notebook runs]"),
        (display.Code("x = 1", language="python"), "x = 1"),
        (display.Pretty("as it is"), "as it is"),
        (display.Markdown("*a*"), "*a*"),
        (display.Latex("$x$"), "$x$"),
        (display.Math("x"), "$\\displaystyle x$"),
        (display.JSON([1]), "[1]"),
        (display.FileLink("a/b.csv"), str(Path("a/b.csv").resolve())),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_ipython_displays_is_a_text(converter, formatter, value, text):
    assert only_text(converter.make_result(value, ()).content) == text
    shown = Displayed(formatter.format(value)[0])
    assert only_text(converter.make_result(None, [shown]).content) == text


def test_a_progress_bar_of_ipython_says_how_far_it_is(converter):
    assert only_text(converter.make_result(display.ProgressBar(7), ()).content).endswith("0/7")


@pytest.mark.smoke
def test_a_widget_is_its_text(converter):
    widgets = pytest.importorskip("ipywidgets")
    assert (
        only_text(converter.make_result(widgets.IntSlider(3), ()).content) == "IntSlider(value=3)"
    )


@pytest.mark.parametrize("embedded", [True, False])
def test_a_picture_of_ipython_is_read_only_if_it_holds_its_data(converter, embedded):
    if embedded:
        [block] = converter.make_result(display.Image(PNG), ()).content
        assert block.data == PNG
    else:
        made = only_text(
            converter.make_result(display.Image(url="http://127.0.0.1:9/a.png"), ()).content
        )
        assert "http://127.0.0.1:9/a.png" in made


def test_a_sound_of_ipython_is_a_sound(converter):
    np = pytest.importorskip("numpy")
    [block] = converter.make_result(display.Audio(np.sin(np.arange(800)), rate=8_000), ()).content
    assert isinstance(block, Audio)
    with wave.open(io.BytesIO(block.data)) as sound:
        assert (sound.getframerate(), sound.getnframes()) == (8_000, 800)


def test_a_video_in_the_document_is_named_and_no_text_of_base64(converter):
    data = bytes(range(256)) * 1_000
    video = display.Video(data, embed=True, mimetype="video/mp4")
    note, link = converter.make_result(video, ()).content
    assert note.text == "[a video]"
    assert (link.name, link.mime_type) == ("page.html", "text/html")


class Failing:
    def _repr_html_(self):
        raise RuntimeError("no html today")

    def _repr_png_(self):
        raise RuntimeError("no picture today")

    def __repr__(self):
        return "Failing()"


def test_a_representation_that_fails_leaves_the_others(converter):
    assert only_text(converter.make_result(Failing(), ()).content) == "Failing()"


def test_a_specification_that_is_not_drawn_keeps_pictures_in_it_out(budget, undrawn):
    source = "data:image/png;base64," + "A" * 10_000
    spec = {"data": [], "layout": {"images": [{"source": source}]}}
    text, link = blocks_of({"application/vnd.plotly.v1+json": spec}, budget)
    assert "[data:image/png;base64, 10,022 characters]" in text.text
    assert isinstance(link, ResourceLink)


def test_any_json_type_is_told_within_bounds(budget):
    rows = [{"x": number} for number in range(100_000)]
    text = only_text(blocks_of({"application/vnd.my+json": rows}, budget))
    assert text.startswith("[application/vnd.my+json, which only a notebook can show:]")
    assert len(text) < 5_200
    assert '{"x":0}' in text


FREEZING = (
    *("<!--", "<!", "<?", "<![CDATA[", "<", "</", "</a", "<a", "<a ", "<a b=", "<a b='", '<a b="'),
    *("<svg", "<script", "<iframe ", "<iframe srcdoc='", "<div hidden srcdoc=", "&#"),
    *("vega vegaEmbed(", "vega })({", "Plotly.newPlot('a',[],", "docs_json = "),
)
"""Markup of which a megabyte took minutes to hours, and some that is like it."""

RENDER = """
import json, sys, time
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.displays import render_mime_bundle
from mcp_notebook.settings.settings import Settings

size, chars = map(int, sys.argv[1:])
budget = Budget(chars=chars)
taken = []
for unit in ["<p>word</p>", "<p>word</p>", *json.load(sys.stdin)]:
    began = time.process_time()
    render_mime_bundle({"text/html": unit * (size // len(unit)) + "<p>"}, budget)
    taken.append(time.process_time() - began)
print(json.dumps(taken[1:]))  # the first one imports what all need
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("units", "size", "chars"),
    [
        (FREEZING, 100_000, 25_000),
        pytest.param(FREEZING, 1_000_000, 25_000, marks=pytest.mark.exhaustive),
        pytest.param(
            [
                "\t",
                " ",
                " \t",
                *(f"<{n}>" * 20_000 + "<i></b>" * 10_000 for n in "bqu"),
                "<input>x",
            ],
            *(300_000, 100_000),
            marks=pytest.mark.exhaustive,
        ),
    ],
    ids=["a little", "a megabyte", "spaces and nested tags"],
)
def test_much_of_any_markup_takes_hardly_longer_than_as_much_of_plain_markup(units, size, chars):
    """Of most of it, a megabyte took minutes and hours."""
    command = [sys.executable, "-c", RENDER, str(size), str(chars)]
    made = subprocess.run(
        command, input=json.dumps(units), text=True, check=True, stdout=subprocess.PIPE
    )
    plain, *others = json.loads(made.stdout)
    slow = {unit[:20]: seconds for unit, seconds in zip(units, others, strict=True)}
    assert max(others) < 3 * plain, (plain, slow)
