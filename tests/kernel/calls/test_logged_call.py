"""What the log keeps of one call, where it may be large or odd."""

import pytest

from mcp_notebook.content import Audio, Resource, ResourceLink, Result, Text
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.logged_call import (
    MAX_ARGUMENTS,
    MAX_ERROR,
    copy_small,
    leave_out_large,
    make_entry,
    measure_structured,
)

CONTENT = [
    Text("abc"),
    Audio(b"1234"),
    Resource("a://b", b"12", mime_type="application/pdf"),
    ResourceLink("c://d", "d"),
]


def end(result):
    call = ActiveCall("a", reply=lambda _: None)
    call.begin(lambda: None)
    call.move(CallState.FAILED if result.is_error else CallState.DONE)
    return make_entry(call, 0.0, result)


def test_each_kind_of_content_is_named_and_measured():
    entry = end(Result(CONTENT))
    assert entry.kinds == ("text", "audio/wav", "application/pdf", "link")
    assert entry.size == 3 + 4 + 2 + 5


def test_a_long_error_is_cut():
    entry = end(Result([Text("x" * 10_000)], is_error=True))
    assert entry.error == "x" * MAX_ERROR + "..."


def test_an_error_without_text_is_an_error():
    assert end(Result([Audio(b"")], is_error=True)).has_failed


@pytest.mark.parametrize(
    "arguments",
    [
        {f"a{number}": number for number in range(10_000)},
        {"a" * 50_000: 1},
        {"a": [{"b": "c" * 500}] * 100},
    ],
)
def test_whatever_is_large_is_small_in_the_log(arguments):
    call = ActiveCall("a", arguments, reply=lambda _: None)
    call.shown_arguments = arguments
    call.move(CallState.FAILED)
    assert copy_small(arguments) is None
    entry = leave_out_large(make_entry(call, 0.0, Result()))
    assert not entry.is_complete
    assert len(repr(entry.arguments)) <= 2 * MAX_ARGUMENTS


@pytest.mark.parametrize("value", [1.5, None, True, "text", [1, [2]], {"b": {"c": []}}])
def test_small_arguments_are_copied(value):
    arguments = {"a": value}
    assert copy_small(arguments) == arguments
    assert copy_small(arguments) is not arguments


def test_structured_content_is_measured_by_its_values():
    assert measure_structured(Result(structured=[[0] * 100] * 100), 1_000) > 1_000
    assert measure_structured(Result([Text("abc")], structured={"a": 1}), 1_000) < 200
    assert measure_structured(Result([Text("abc")]), 1_000) == 0
