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
    assert sorted(text_of(result).splitlines()[-1] for result in results) == [
        "a [1] True",
        "b [1] True",
    ]
    for result in results:
        assert sum(isinstance(block, Image) for block in result.content) == 1


def test_what_was_drawn_before_an_exception_comes_with_it(kernel):
    with Link(record_of(kernel)) as link:
        picture, line, error = link.call("fail", how="drawn").content
        assert isinstance(picture, Image)
        assert line.text == "[Figure x 0 to 1, y 1 to 2, 1 line.]"
        assert error.text.startswith("ValueError: after the plot")
        (error,) = link.call("fail", how="empty").content
        assert error.text.startswith("ValueError: after the plot")
    assert kernel.ok("print(plt.get_fignums())").stdout == "[]\n"


MANY = """
from matplotlib.figure import Figure
drawn = []
before = Figure.draw
def count(self, renderer):
    drawn.append(self)
    return before(self, renderer)
Figure.draw = count

@mcp_tool(run="thread")
def show_many(way: str):
    for number in range(12):
        plt.figure()
        plt.plot([number])
        plt.title(f"number {number}")
        if way == "show":
            plt.show()
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["show", "leave"])
def test_of_twelve_figures_eight_are_drawn_and_sent(kernel, way):
    kernel.ok("%matplotlib inline")
    kernel.ok(MANY)
    with Link(record_of(kernel)) as link:
        result = link.call("show_many", way=way)
    kernel.ok("Figure.draw = before; plt.close('all')")
    assert sum(isinstance(block, Image) for block in result.content) == 8
    assert 'Not drawn: Figure "number 10": x ' in text_of(result)
    assert 'Not drawn: Figure "number 11"' not in text_of(result)
    assert int(kernel.ok("print(len(set(map(id, drawn))))").stdout) == 8
    kernel.ok("%matplotlib agg")


@pytest.mark.parametrize("way", ["return", "display"])
def test_a_canvas_is_its_figure_once(kernel, way):
    with Link(record_of(kernel)) as link:
        picture, _line = link.call("show_canvas", way=way).content
    assert isinstance(picture, Image)


def test_with_figures_as_widgets_a_figure_is_shown_once(kernel):
    pytest.importorskip("ipympl")
    kernel.run("%matplotlib widget")
    with Link(record_of(kernel)) as link:
        for way in ("return", "display", "show"):
            picture, _line = link.call("show_canvas", way=way).content
            assert isinstance(picture, Image)
    kernel.ok("%matplotlib agg")


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
