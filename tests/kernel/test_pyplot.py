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
    both.wait(10)
    plt.title(name)
    both.wait(10)
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
