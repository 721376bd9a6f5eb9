"""A routed stream asks who takes a text, whatever others do with its ``write``."""

import io

import pytest

from mcp_notebook.kernel.calls.streams import leave_stream, route_stream


class Stream(io.StringIO):
    """A stream that is written in Python, as ipykernel's."""

    def write(self, text):
        return super().write(text)


@pytest.fixture
def stream():
    return Stream()


def route(stream, takers):
    """Route a stream to the last one in a list, to itself while that is empty."""
    assert route_stream(stream, lambda: takers[-1] if takers else None)


def test_texts_go_to_who_takes_them_and_else_to_the_stream(stream):
    taken, takers = [], []
    route(stream, takers)
    stream.write("one")
    takers.append(taken.append)
    assert stream.write("two") == 3
    print("three", file=stream)
    takers.clear()
    stream.write("four")
    assert stream.getvalue() == "onefour"
    assert "".join(taken) == "twothree\n"


def test_only_texts_are_taken(stream):
    route(stream, [lambda _text: None])
    with pytest.raises(TypeError, match="must be str, not bytes"):
        stream.write(b"one")


def test_a_stream_is_routed_once(stream):
    route(stream, [])
    assert route_stream(stream, lambda: None) is False
    assert route_stream(None, lambda: None) is False


def test_a_stream_that_is_not_written_in_python_stays_as_it_is():
    stream = io.StringIO()
    assert route_stream(stream, lambda: None) is False
    assert stream.write("one") == 3


def test_a_write_that_is_set_on_the_stream_gets_what_nobody_takes(stream):
    taken, own, takers = [], [], []
    route(stream, takers)
    found = stream.write
    stream.write = own.append  # as IPython does when a cell begins
    stream.write("one")
    takers.append(taken.append)
    stream.write("two")
    takers.clear()
    stream.write = found  # and when it ends
    stream.write("three")
    assert (own, taken, stream.getvalue()) == (["one"], ["two"], "three")


def test_a_stream_that_is_left_is_as_it_was(stream):
    route(stream, [lambda _text: None])
    leave_stream(stream)
    leave_stream(stream)
    assert type(stream) is Stream
    stream.write("one")
    assert stream.getvalue() == "one"


def test_what_was_set_while_it_was_routed_stays(stream):
    own = []
    route(stream, [])
    stream.write = own.append
    leave_stream(stream)
    stream.write("one")
    assert own == ["one"]
