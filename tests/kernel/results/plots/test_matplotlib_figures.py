"""matplotlib's figures, with IPython's real formatters."""

import base64
import gc
import io
import warnings

import pytest
from IPython.core.formatters import DisplayFormatter
from IPython.core.pylabtools import print_figure

from mcp_notebook.content import Image, ResourceLink, Result, Text
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.outputs import Displayed
from mcp_notebook.kernel.results.plots.matplotlib_figures import NOTE, draw_figure, has_figure
from mcp_notebook.settings.settings import Settings

pil = pytest.importorskip("PIL.Image")
resource = pytest.importorskip("resource")


@pytest.fixture
def formatter(plt):
    """The formatters of a notebook with its inline pictures."""
    formatter = DisplayFormatter()
    figure = plt.figure
    formatter.formatters["image/png"].for_type(
        type(figure()), lambda figure: print_figure(figure, "png", base64=True)
    )
    return formatter


def shown(result):
    """Return the size of the one picture, and the texts."""
    [picture] = [block for block in result.content if isinstance(block, Image)]
    texts = [block.text for block in result.content if isinstance(block, Text)]
    return pil.open(io.BytesIO(picture.data)).size, texts


@pytest.mark.smoke
def test_a_large_figure_is_scaled_down_and_its_own_picture_is_the_original(converter, plt, store):
    figure, axes = plt.subplots(figsize=(24, 16))
    axes.plot([1, 2])
    result = converter.make_result(figure, ())
    size, [note] = shown(result)
    assert max(size) == 1_568
    link = result.content[-1]
    assert isinstance(link, ResourceLink)
    whole = store.find_format(link.uri).content()
    assert base64.b64encode(whole).decode() == print_figure(figure, base64=True)
    width, height = pil.open(io.BytesIO(whole)).size
    assert note == (
        f"[Figure x 0 to 1, y 1 to 2, 1 line. "
        f"The picture was scaled down from {width}x{height} to {size[0]}x{size[1]} pixels.]"
    )


def test_a_figure_of_30_000_pixels_is_drawn_small_at_once(converter, plt):
    figure = plt.figure(figsize=(300, 300), dpi=100)
    figure.add_subplot().plot([1, 2])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size, [note] = shown(converter.make_result(figure, ()))
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert max(size) == 1_568
    assert note == (
        "[Figure x 0 to 1, y 1 to 2, 1 line. The figure, of 300 x 300 inches and 30,000 x 30,000 "
        "pixels, was drawn at 5.23 dpi instead of 100: figure.savefig(path) saves it in full size.]"
    )
    assert taken < 500_000  # KiB; 30,000 x 30,000 pixels have 3,600,000
    assert (figure.dpi, figure.get_size_inches().tolist()) == (100, [300, 300])


def test_a_figure_whose_drawing_raises_becomes_a_sentence(plt):
    figure, axes = plt.subplots()
    axes.set_title(r"$\\frac{$")
    data, _ = draw_figure(figure, lambda *_: ({}, {}), 1_568)
    assert data["text/plain"].startswith("[The figure cannot be drawn: ValueError: ")


def test_a_figure_is_a_picture_whatever_formats_the_notebook_shows(plt):
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    data, _ = draw_figure(figure, DisplayFormatter().format, 1_568)
    assert data["image/png"].startswith(b"\x89PNG")
    alone = plt.figure()
    alone.text(0.5, 0.5, "only a text")
    data, _ = draw_figure(alone, DisplayFormatter().format, 1_568)
    assert data["image/png"].startswith(b"\x89PNG")


def test_an_image_of_a_figure_keeps_what_its_author_says(converter, plt):
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    picture, _ = converter.make_result(Image(figure, audience="user", priority=1), ()).content
    assert (picture.audience, picture.priority) == (("user",), 1)


def test_it_is_known_whether_a_value_shows_an_open_figure(plt):
    figure, axes = plt.subplots()
    other = plt.figure()
    blocks = Image(figure, audience="user"), Result([Image(axes)])
    for value in (figure, axes, [figure, "a"], ["a", axes], {"plot": figure}, *blocks):
        assert has_figure(value, figure)
        assert has_figure([value], figure) or isinstance(value, (list, dict, Result))
        assert not has_figure(value, other)
    for value in (None, 1, "a", [], {}, [1, 2], {"a": 1}):
        assert not has_figure(value, figure)


def test_characters_that_no_font_has_are_a_note_and_other_warnings_stay(plt, formatter):
    figure = plt.figure()
    figure.suptitle("\u964d\u6c34\u964d")
    axes = figure.add_subplot()

    def draw(renderer):
        warnings.warn("of the author's", stacklevel=1)
        plot(renderer)

    plot, axes.draw = axes.draw, draw
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        data, metadata = draw_figure(figure, formatter.format, 9)
    assert "image/png" in data
    assert metadata[NOTE].startswith(
        'Figure "\u964d\u6c34\u964d". The figure\'s fonts lack \u964d\u6c34, drawn as'
    )
    assert {str(warning.message) for warning in warned} == {"of the author's"}


def test_drawing_changes_nothing_that_other_threads_share(plt, formatter):
    figure, axes = plt.subplots()
    axes.set_title("\u964d")
    seen = []

    def look():
        return [warnings.showwarning, warnings.filters, list(warnings.filters), dict(plt.rcParams)]

    class Watch(type(axes.title)):
        def draw(self, _renderer):
            seen.append(look())

    axes.add_artist(Watch(0, 0, "watch"))
    shared = look()
    data, _ = draw_figure(figure, formatter.format, 9)
    assert "image/png" in data
    assert seen
    assert all(item == shared and item[1] is shared[1] for item in seen)


@pytest.fixture
def drawn(formatter, plt):
    """The figures that were drawn, in order; `formatter` draws them."""
    drawn = []
    plt.rcParams["figure.max_open_warning"] = 0
    draw = formatter.formatters["image/png"].type_printers
    for kind, function in list(draw.items()):
        draw[kind] = lambda figure, function=function: drawn.append(figure) or function(figure)
    return drawn


@pytest.fixture
def drawing(formatter, store):
    """A converter that draws with `formatter`."""
    return Converter(formatter.format, Settings(), keep=store.keep)


def make_figures(plt, number):
    figures = [plt.figure() for _ in range(number)]
    for index, figure in enumerate(figures):
        figure.add_subplot(title=f"number {index}").plot([index])
    return figures


def read_titles(result):
    """Return the numbers in the titles of the pictures that are sent, and of the others."""
    texts = [block.text for block in result.content if isinstance(block, Text)]
    numbers = [(text, int(text.split("number ")[1].split('"')[0])) for text in texts[:-1]]
    left_out = [number for text, number in numbers if text.startswith("[Not drawn: Figure")]
    return [number for _, number in numbers if number not in left_out], left_out, texts[-1]


SENT = [*range(7), 11]


@pytest.mark.parametrize("way", ["returned", "left open", "in a dict"])
def test_of_twelve_figures_those_that_are_sent_are_drawn(drawing, drawn, plt, way):
    figures = make_figures(plt, 12)
    drawn.clear()
    if way == "left open":
        open_ones = drawing.format_figures(figures, None)
        outputs = [Displayed(data, metadata) for data, metadata in open_ones]
        result = drawing.make_result(None, outputs)
    else:
        value = figures if way == "returned" else dict(enumerate(figures))
        result = drawing.make_result(value, ())
    assert len(drawn) == 8
    assert sum(isinstance(block, Image) for block in result.content) == 8
    if way != "in a dict":
        sent, left_out, note = read_titles(result)
        assert (sent, left_out) == (SENT, list(range(7, 11)))
        assert note == "[4 of 12 pictures are left out and not drawn.]"


def test_of_twelve_displayed_figures_too_each_as_it_was_then(drawing, drawn, plt):
    figure, axes = plt.subplots()
    drawn.clear()
    outputs = []
    for number in range(12):
        axes.clear()
        axes.set_title(f"number {number}")
        axes.plot([number])
        data, metadata = drawing.format_display(figure, figures_before=number)
        outputs.append(Displayed(data, metadata))
    axes.clear()
    before = plt.get_fignums()
    result = drawing.make_result(None, outputs)
    assert plt.get_fignums() == before
    assert len(drawn) == 8
    sent, left_out, _ = read_titles(result)
    assert (sent, left_out) == (SENT, list(range(7, 11)))


def test_a_late_figure_that_cannot_be_copied_is_drawn_at_once(drawing, drawn, plt):
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    figure.cannot_be_copied = lambda: None
    drawn.clear()
    data, _ = drawing.format_display(figure, figures_before=20)
    assert "image/png" in data
    assert drawn == [figure]


def test_a_shown_figure_that_is_gone_by_the_end_of_the_call_is_sent(drawing, plt):
    [figure] = make_figures(plt, 1)
    outputs = [Displayed(*drawing.format_display(figure))]
    plt.close("all")
    del figure
    gc.collect()
    assert isinstance(drawing.make_result("ok", outputs).content[0], Image)


def test_a_figure_that_was_shown_and_returned_is_sent_once_however_many_there_are(drawing, plt):
    figures = make_figures(plt, 7)
    outputs = [Displayed(*drawing.format_display(figure)) for figure in figures]
    result = drawing.make_result(figures, outputs)
    assert sum(isinstance(block, Image) for block in result.content) == 7
    assert not any("left out" in block.text for block in result.content if isinstance(block, Text))
