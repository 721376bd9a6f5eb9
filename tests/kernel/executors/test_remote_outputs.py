"""What is collected on a worker: here on threads of the test's own process."""

# ruff: noqa: T201 - what is printed is what is tested

import builtins
import pickle
import sys
import threading

import pytest

from mcp_notebook.kernel.executors.remote_outputs import (
    Outputs,
    close_figures,
    collect,
    open_figures,
)


@pytest.fixture
def outputs():
    return Outputs()


@pytest.fixture
def pyplot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    yield pyplot
    pyplot.close("all")


def displayed(output):
    function, pickled, _text = output
    return function, *pickle.loads(pickled)


def test_prints_and_displays_come_in_their_order(outputs):
    with collect(outputs):
        print("one")
        print("two", file=sys.stderr)
        builtins.display({"three": 3}, metadata={})
        print("four")
    first, second, third = outputs.items
    assert (first, third) == ("one\ntwo\n", "four\n")
    assert displayed(second) == ("display", ({"three": 3},), {"metadata": {}})


def test_a_display_is_what_it_was_when_it_was_displayed(outputs):
    numbers = [1]
    outputs.display(numbers)
    numbers.append(2)
    assert displayed(outputs.items[0])[1] == ([1],)


@pytest.fixture
def set_limit(monkeypatch):
    """Set how much of a call is kept, by the name of the module's variable."""

    def set_limit(name, value):
        # Where a class that was pickled by value is read again in its own process, its methods
        # have copies of the module's variables from then on.
        monkeypatch.setitem(Outputs.__init__.__globals__, name, value)

    return set_limit


def test_what_cannot_be_sent_is_its_text(outputs, set_limit):
    set_limit("MAX_DISPLAYED", 0)

    class Silent:
        def __repr__(self):
            raise LookupError("no words")

    outputs.display(threading.Lock(), Silent())
    function, pickled, text = outputs.items[0]
    assert (function, pickled) == ("display", None)
    assert text.startswith("<unlocked _thread.lock")
    assert "[a display of type Silent, whose repr failed: no words]" in text


def test_displays_beyond_the_bound_are_their_texts(set_limit):
    set_limit("MAX_DISPLAYED", 1000)
    outputs = Outputs()
    outputs.display("a" * 600)
    outputs.display("b" * 600)
    outputs.display("c" * 100)
    assert [pickled is None for _, pickled, _ in outputs.items] == [False, True, False]


def test_a_display_can_be_updated_by_its_handle(outputs):
    handle = outputs.display(1, display_id=True)
    handle.update(2)
    handle.display(3)
    outputs.clear(wait=True)
    assert outputs.display(4) is None
    functions = [displayed(item) for item in outputs.items]
    assert [function for function, _, _ in functions] == [
        *["display"] * 3,
        "clear_output",
        "display",
    ]
    assert functions[1][2] == {"display_id": handle.display_id, "update": True}
    assert functions[3][2] == {"wait": True}


def test_shown_figures_are_displayed_where_they_were_shown(outputs, pyplot):
    with collect(outputs):
        pyplot.plot([1, 2])
        pyplot.show()
        print("between")
        pyplot.plot([3, 4])
        pyplot.show()
    first, between, second = outputs.items
    assert between == "between\n"
    for output in (first, second):
        _, (figure,), _ = displayed(output)
        assert len(figure.axes[0].lines) == 1
    assert open_figures() == []


def test_a_displayed_figure_stays_open_here_and_is_not_opened_where_it_is_read(outputs, pyplot):
    figure = pyplot.figure()
    outputs.display(figure)
    assert open_figures() == [figure]
    close_figures([figure])
    displayed(outputs.items[0])
    assert open_figures() == []


def test_a_flood_of_prints_is_cut(set_limit):
    set_limit("MAX_PRINTED", 10)
    outputs = Outputs()
    outputs.write("x" * 25)
    outputs.write("y")
    assert outputs.items == ["x" * 10, "\n[... 16 characters dropped ...]\n"]
