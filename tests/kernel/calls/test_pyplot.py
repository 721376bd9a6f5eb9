"""Calls have pyplot's figures to themselves."""

import pytest
from live import Link, record_of, text_of

from mcp_notebook.content import Image

TOOLS = """
import time, threading
import matplotlib.pyplot as plt
from mcp_notebook import mcp_tool

both = threading.Barrier(2)

@mcp_tool(run="thread")
def draw(name: str) -> str:
    plt.plot([1, 2])
    both.wait(60)
    plt.title(name)
    both.wait(60)
    return f"{plt.gca().get_title()} {plt.get_fignums()} {plt.fignum_exists(1)}"

@mcp_tool
def close_all() -> str:
    before = plt.get_fignums()
    plt.figure(7)
    plt.figure(3)
    plt.figure(7)
    plt.close("all")
    return f"{before} {plt.get_fignums()}"

@mcp_tool
def several() -> str:
    first, second = plt.figure(), plt.figure()
    plt.figure(first.number)
    return f"{plt.gcf() is first} {plt.get_fignums()}"

@mcp_tool
def huge(way: str):
    figure = plt.figure(figsize=(300, 300), dpi=100)
    figure.add_subplot().plot([1, 2])
    if way == "display":
        display(figure)
        plt.close(figure)
    elif way == "return":
        return figure

@mcp_tool
def animate(way: str):
    from matplotlib.animation import ArtistAnimation
    figure, axes = plt.subplots()
    moving = ArtistAnimation(figure, [axes.plot([1, 2]), axes.plot([2, 1])])
    if way == "display":
        display(moving)
        plt.close(figure)
    elif way == "return":
        return {"moving": moving}

@mcp_tool
def fail(how: str):
    figure, axes = plt.subplots()
    if how == "drawn":
        axes.plot([1, 2])
    raise ValueError("after the plot")

@mcp_tool
def rain():
    plt.title("降雨量 in mm")

@mcp_tool
def show_canvas(way: str):
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    if way == "return":
        return figure.canvas
    if way == "show":
        plt.show()
    else:
        display(figure.canvas)

@mcp_tool
def show_box(way: str):
    import ipywidgets as widgets

    figure, axes = plt.subplots()
    axes.plot([1, 2])
    box = widgets.VBox([widgets.Label("speed"), widgets.HBox([figure.canvas])])
    if way == "return":
        return box
    display(box)

@mcp_tool
def cannot_be_drawn():
    plt.title(r"$\\frac{$")
"""


@pytest.fixture(scope="module")
def kernel(shared_kernel):
    pytest.importorskip("matplotlib")
    shared_kernel.ok("%matplotlib agg")
    shared_kernel.ok(TOOLS)
    return shared_kernel


def test_calls_that_overlap_draw_on_figures_of_their_own(kernel):
    with Link(record_of(kernel)) as link:
        link.start("draw", name="a")
        link.start("draw", name="b")
        results = [link.result(), link.result()]
    assert sorted(text_of(result) for result in results) == ["a [1] True", "b [1] True"]
    for result in results:
        assert sum(isinstance(block, Image) for block in result.content) == 1


@pytest.mark.parametrize("way", ["display", "return", "leave it open"])
def test_a_figure_of_30_000_pixels_leaves_the_kernel_alive(kernel, way):
    with Link(record_of(kernel)) as link:
        picture, note = link.call("huge", way=way).content
    assert isinstance(picture, Image)
    assert note.text.startswith("[The figure, of 300 x 300 inches and 30,000 x 30,000 pixels")


@pytest.mark.parametrize("way", ["display", "return"])
def test_an_animation_is_one_picture_with_a_note(kernel, way):
    with Link(record_of(kernel)) as link:
        result = link.call("animate", way=way)
    assert sum(isinstance(block, Image) for block in result.content) == 1
    assert text_of(result).endswith("[This is the first frame of an animation.]")


def test_what_was_drawn_before_an_exception_comes_with_it(kernel):
    with Link(record_of(kernel)) as link:
        picture, error = link.call("fail", how="drawn").content
        assert isinstance(picture, Image)
        assert error.text.startswith("ValueError: after the plot")
        (error,) = link.call("fail", how="empty").content
        assert error.text.startswith("ValueError: after the plot")
    assert kernel.ok("print(plt.get_fignums())").stdout == "[]\n"


def test_characters_that_no_font_has_are_named_in_one_sentence(kernel):
    with Link(record_of(kernel)) as link:
        picture, note = link.call("rain").content
    assert isinstance(picture, Image)
    assert note.text.startswith("[The figure's fonts lack 降雨量, drawn as empty boxes: ")


@pytest.mark.parametrize("way", ["return", "display"])
def test_a_canvas_is_its_figure_once(kernel, way):
    with Link(record_of(kernel)) as link:
        (picture,) = link.call("show_canvas", way=way).content
    assert isinstance(picture, Image)


def test_with_figures_as_widgets_a_figure_is_shown_once(kernel):
    pytest.importorskip("ipympl")
    kernel.run("%matplotlib widget")
    with Link(record_of(kernel)) as link:
        for way in ("return", "display", "show"):
            (picture,) = link.call("show_canvas", way=way).content
            assert isinstance(picture, Image)
        for way in ("return", "display"):
            text, picture = link.call("show_box", way=way).content
            assert (text.text.strip(), type(picture)) == ("speed", Image)
    kernel.ok("%matplotlib agg")


def test_an_open_figure_that_cannot_be_drawn_is_a_sentence(kernel):
    with Link(record_of(kernel)) as link:
        result = link.call("cannot_be_drawn")
    assert text_of(result).startswith("[The figure cannot be drawn: ValueError: ")


def test_a_call_neither_sees_nor_closes_the_users_figures(kernel):
    kernel.ok("mine = plt.figure(); plt.plot([1])")
    with Link(record_of(kernel)) as link:
        assert text_of(link.call("close_all")) == "[] []"
        assert text_of(link.call("several")).endswith("True [1, 2]")
    assert kernel.ok("print(plt.get_fignums(), plt.gcf() is mine)").stdout == "[1] True\n"


def test_pyplot_has_its_figures_back_when_the_extension_is_unloaded(kernel):
    with Link(record_of(kernel)) as link:
        link.call("several")
    kernel.ok("plt.close('all'); mine = plt.figure()")
    kernel.ok("%unload_ext mcp_notebook")
    output = kernel.ok(
        "import matplotlib._pylab_helpers as helpers\n"
        "print(type(helpers.Gcf.figs).__name__, plt.get_fignums(), plt.gcf() is mine)"
    )
    assert output.stdout == "OrderedDict [1] True\n"
    kernel.ok("%load_ext mcp_notebook")
    kernel.ok(TOOLS)
