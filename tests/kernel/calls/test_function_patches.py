"""Functions are others for calls while any is active, and afterwards what they were."""

from contextvars import ContextVar
from types import SimpleNamespace

import pytest

from mcp_notebook.kernel.calls.function_patches import FunctionPatches


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
    return FunctionPatches(current)


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


def test_what_stands_in_its_place_is_made_once(patches):
    owner, made = Owner(), []
    for _ in range(2):
        patches.install((owner, "name", in_call))
        made.append(owner.name)
        patches.remove()
    assert made[0] is made[1]


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
