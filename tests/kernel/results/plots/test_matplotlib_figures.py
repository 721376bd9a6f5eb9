"""matplotlib's figures and animations, with IPython's real formatters."""

import base64
import gc
import io
import warnings

import pytest
from IPython.core.formatters import DisplayFormatter
from IPython.core.pylabtools import print_figure

from mcp_notebook.content import Image, ResourceLink, Result, Text
from mcp_notebook.kernel.results.plots.matplotlib_figures import NOTE, draw_figure, has_figure

pil = pytest.importorskip("PIL.Image")
resource = pytest.importorskip("resource")


@pytest.fixture
def animation(plt):
    return pytest.importorskip("matplotlib.animation")


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
        f"[The picture was scaled down from {width}x{height} to {size[0]}x{size[1]} pixels.]"
    )


def test_a_figure_of_30_000_pixels_is_drawn_small_at_once(converter, plt):
    figure = plt.figure(figsize=(300, 300), dpi=100)
    figure.add_subplot().plot([1, 2])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size, [note] = shown(converter.make_result(figure, ()))
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert max(size) == 1_568
    assert note == (
        "[The figure, of 300 x 300 inches and 30,000 x 30,000 pixels, was drawn at 5.23 dpi "
        "instead of 100: figure.savefig(path) saves it in full size.]"
    )
    assert taken < 500_000  # KiB; 30,000 x 30,000 pixels have 3,600,000
    assert (figure.dpi, figure.get_size_inches().tolist()) == (100, [300, 300])


def test_what_lies_far_outside_a_figure_does_not_make_it_huge(converter, plt):
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    axes.text(3_000, 1, "far away")
    size, [note] = shown(converter.make_result(figure, ()))
    assert size == (640, 480)
    assert note.startswith("[What lies outside the figure is left out: with it there would be 1,")


def test_a_figure_without_height_is_named(converter, plt):
    figure = plt.figure(figsize=(30_000, 3))
    figure.add_subplot().plot([1, 2])
    [text] = converter.make_result(figure, ()).content
    assert text.text == (
        "[The figure cannot be drawn: ValueError: it is 30000 x 3 inches, which are "
        "3,000,000 x 300 pixels.]"
    )


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


def test_a_subfigure_that_is_displayed_is_its_whole_figure(converter, plt):
    figure = plt.figure()
    left, _ = figure.subfigures(1, 2)
    left.subplots().plot([1, 2])
    assert converter.format_display(left) == converter.format_display(figure)


def test_an_image_of_a_figure_keeps_what_its_author_says(converter, plt):
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    [picture] = converter.make_result(Image(figure, audience="user", priority=1), ()).content
    assert (picture.audience, picture.priority) == (("user",), 1)


@pytest.mark.parametrize("blit", [True, False])
def test_an_animation_is_its_first_frame_without_warnings(converter, plt, animation, blit):
    figure, axes = plt.subplots()
    (line,) = axes.plot([], [])
    drawn = []

    def draw(number):
        drawn.append(number)
        line.set_data([0, 1], [number, number + 1])
        return (line,)

    moving = animation.FuncAnimation(figure, draw, frames=range(7, 500), blit=blit)
    _, texts = shown(converter.make_result(moving, ()))
    assert texts == ["[This is the first frame of an animation.]"]
    assert set(drawn) == {7}
    assert line.get_ydata() == [7, 8]
    data, metadata = converter.format_display(moving)
    assert "image/png" in data
    assert metadata
    del moving
    gc.collect()  # matplotlib warns of animations that were never drawn, and warnings fail tests


def test_an_animation_of_artists_is_its_first_frame_also_in_a_list(converter, plt, animation):
    figure, axes = plt.subplots()
    frames = [axes.plot([number, 0]) for number in range(3)]
    moving = animation.ArtistAnimation(figure, frames)
    _, texts = shown(converter.make_result([moving, "moving"], ()))
    assert texts == ["[This is the first frame of an animation.]", "moving"]
    assert [frame[0].get_visible() for frame in frames] == [True, False, False]


def test_an_animation_whose_frames_raise_becomes_a_sentence(converter, plt, animation):
    def draw(number):
        raise RuntimeError("no frame today")

    moving = animation.FuncAnimation(plt.figure(), draw, frames=3)
    [text] = converter.make_result(moving, ()).content
    assert text.text == "[The animation cannot be drawn: RuntimeError: no frame today.]"


def test_it_is_known_whether_a_value_shows_an_open_figure(plt, animation):
    figure, axes = plt.subplots()
    other = plt.figure()
    moving = animation.ArtistAnimation(figure, [axes.plot([1, 2])])
    blocks = Image(figure, audience="user"), Result([Image(axes)])
    for value in (figure, axes, [figure, "a"], ["a", axes], {"plot": figure}, moving, *blocks):
        assert has_figure(value, figure)
        assert has_figure([value], figure) or isinstance(value, (list, dict, Result))
        assert not has_figure(value, other)
    for value in (None, 1, "a", [], {}, [1, 2], {"a": 1}):
        assert not has_figure(value, figure)
    draw_figure(moving, DisplayFormatter().format, 100)  # or matplotlib warns that nobody drew it


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
    assert metadata[NOTE].startswith("The figure's fonts lack \u964d\u6c34, drawn as")
    assert {str(warning.message) for warning in warned} == {"of the author's"}


def test_many_characters_that_no_font_has_are_cut(plt, formatter):
    figure = plt.figure()
    figure.suptitle("".join(map(chr, range(0x4E00, 0x4E00 + 50))))
    _, metadata = draw_figure(figure, formatter.format, 9)
    assert len(metadata[NOTE]) < 200
