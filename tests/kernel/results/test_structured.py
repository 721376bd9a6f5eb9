"""Structured content, and the `Result` that an author makes by hand."""

from datetime import date

import pytest
from contents import only_text

from mcp_notebook.content import Resource, Result, Text
from mcp_notebook.errors import InvalidResult
from mcp_notebook.kernel.results.structured import NO_DATA, make_structured
from mcp_notebook.wire.resource_uris import describe_links


def test_a_result_is_passed_on_with_its_parts_made_fit(converter):
    given_ = Result(
        ["text", Resource("notebook:///x", "\ud800")],
        structured={"a": float("nan"), "when": date(2024, 1, 1)},
        is_error=True,
        meta={"org.example/x": {1}},
    )
    made = converter.make_result(given_, ())
    link = made.content[-1]  # to the document, for those who read the data only
    about = f"text\n\n{describe_links([link])}"
    assert made == Result(
        [Text("text"), Resource("notebook:///x", "\ufffd"), link],
        structured={"about_this_result": about, "a": None, "when": "2024-01-01"},
        is_error=True,
        meta={"org.example/x": [1]},
    )


def test_a_result_with_structured_content_alone_has_its_text_too(converter):
    assert only_text(converter.make_result(Result(structured={"a": 1}), ())) == '{"a":1}'


@pytest.mark.parametrize(
    ("meta", "problem"),
    [
        (["a"], "is a dict"),
        ({"dev.mcp/x": 1}, "has the key 'dev.mcp/x'"),
        ({5: 1}, "has the key 5"),
    ],
)
def test_a_result_whose_meta_cannot_be_sent_is_a_failure(converter, meta, problem):
    result = converter.make_result(Result("text", meta=meta), ())
    assert result.is_error
    assert problem in only_text(result)


def test_data_without_a_part_that_is_small_enough_is_refused():
    with pytest.raises(InvalidResult):
        make_structured(Result(structured={"x" * 100: 1}), None, 50)


def test_without_a_schema_a_value_has_no_structured_content():
    assert make_structured({"a": 1}, None, 50) == NO_DATA
