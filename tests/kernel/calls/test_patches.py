"""Functions are others for calls while any is active, and afterwards what they were."""

import io
from contextvars import ContextVar
from types import SimpleNamespace

import pytest

from mcp_notebook.kernel.calls.environment import FunctionPatches
from mcp_notebook.kernel.calls.streams import leave_stream, route_stream


class Owner:
    def name(self, *arguments):
        return "method", *arguments


def in_call(call, *arguments):
    return call, *arguments


@pytest.fixture
def current():
    return ContextVar("current", default=None)


@pytest.fixture
def patches(current):
    return FunctionPatches(current.get)


def call_in(current, function, *arguments):
    token = current.set("call")
    try:
        return function(*arguments)
    finally:
        current.reset(token)


def test_calls_get_the_other_function_and_all_else_the_one_that_was_there(patches, current):
    owner = Owner()
    for _ in range(2):
        patches.install((owner, "name", in_call))
        assert call_in(current, owner.name, 1) == ("call", 1)
        assert owner.name(1) == ("method", 1)
        patches.remove()
        assert vars(owner) == {}
    assert call_in(current, owner.name, 1) == ("method", 1)


def test_what_the_user_put_in_its_place_meanwhile_is_kept(patches, current):
    owner = Owner()
    patches.install((owner, "name", in_call))
    inner = owner.name
    owner.name = outer = lambda *arguments: ("outer", *inner(*arguments))
    patches.remove()
    assert owner.name is outer
    assert owner.name(1) == ("outer", "method", 1)
    patches.install((owner, "name", in_call))
    assert owner.name(1) == ("outer", "method", 1)
    assert call_in(current, owner.name, 1) == ("call", 1)
    patches.remove()
    assert owner.name is outer


def test_it_is_known_whether_something_was_put_in_the_place_of_one(patches):
    owner, other = Owner(), Owner()
    assert not patches.are_in_place
    patches.install((owner, "name", in_call), (other, "name", in_call))
    assert patches.are_in_place
    ours, other.name = other.name, lambda: "another"
    assert not patches.are_in_place
    other.name = ours
    assert patches.are_in_place
    patches.remove()
    assert not patches.are_in_place


def test_another_function_or_owner_of_the_name_is_followed(patches, current):
    first, second = Owner(), SimpleNamespace(name=lambda: "second")
    third = lambda: "third"  # noqa: E731 - an attribute
    for owner, change in ((first, None), (second, None), (second, third), (first, None)):
        if change is not None:
            owner.name = change
        expected, before = owner.name(), dict(vars(owner))
        patches.install((owner, "name", in_call))
        assert owner.name() == expected
        assert call_in(current, owner.name) == ("call",)
        patches.remove()
        assert vars(owner) == before


def test_a_method_that_becomes_an_attribute_stays_one(patches):
    owner = SimpleNamespace(name=Owner.name)
    patches.install((Owner, "name", in_call))
    patches.remove()
    patches.install((owner, "name", in_call))
    patches.remove()
    assert vars(owner) == {"name": Owner.name}


def test_an_owner_that_finds_its_functions_in_its_own_way_is_followed(patches, current):
    class Finder:
        def __getattr__(self, name):
            return lambda: (name, self.__dict__["number"])

    finder = Finder()
    for number in range(2):
        vars(finder)["number"] = number
        patches.install((finder, "name", in_call))
        assert finder.name() == ("name", number)
        assert call_in(current, finder.name) == ("call",)
        patches.remove()


def test_what_cannot_be_changed_stays_as_it_is_and_all_else_is_changed(patches, current):
    owner = Owner()
    patches.install((1, "name", in_call), (owner, "other", in_call), (owner, "name", in_call))
    assert call_in(current, owner.name) == ("call",)
    patches.remove()
    assert vars(owner) == {}


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
