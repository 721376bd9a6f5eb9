"""The tags of HTML that may be broken in any way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.kernel.results.html.tags import iterate_tags, unescape

PARTS = (
    "<!--",
    "-->",
    "<script>",
    "</script>",
    "<a",
    "b=",
    '"',
    "'",
    ">",
    "/",
    "=",
    " ",
    "&#1",
    "x",
)


def tags_of(markup):
    return list(iterate_tags(markup, {"a", "/a"}))


@pytest.mark.parametrize(
    ("markup", "tags"),
    [
        ("<a>", [("a", {})]),
        ("<A HREF=x/y>", [("a", {"href": "x/y"})]),
        ("<a b='1' c=\"2\" d = 3 e>", [("a", {"b": "1", "c": "2", "d": "3", "e": ""})]),
        ("<a b='>' c='<a>'>", [("a", {"b": ">", "c": "<a>"})]),
        ("<a b='&lt;&#49;'>", [("a", {"b": "<1"})]),
        ("<p title='<a>'></p></a>", [("/a", {})]),
        ("<a b=it's><a>", [("a", {"b": "it's"}), ("a", {})]),
        ("<a b='x><a>", [("a", {"b": "'x"}), ("a", {})]),
        ("<a/><a b />", [("a", {}), ("a", {"b": ""})]),
        ("<abbr>< a><!a><?a>", []),
    ],
)
def test_a_tag_has_its_attributes(markup, tags):
    assert tags_of(markup) == tags


@pytest.mark.parametrize(
    "markup",
    ["<!-- <a> --><a>", "<script>'<a>'</script ><a>", "<style type=x><a></style><a>", "1 < 2 <a>"],
)
def test_plain_text_has_no_tags(markup):
    assert tags_of(markup) == [("a", {})]


@pytest.mark.parametrize("markup", ["<!-- <a>", "<script><a>", "<a", "<a b", "<a b='>'", ""])
def test_what_does_not_end_goes_to_the_end_of_the_document(markup):
    assert tags_of(markup) == []


def test_a_reference_to_a_character_that_cannot_exist_is_text():
    huge = f"&#{'1' * 5_000};"
    assert unescape(f"&#65;{huge}&#x41;") == f"A{huge}A"
    assert tags_of(f"<a b='{huge}'>") == [("a", {"b": huge})]


@given(st.lists(st.sampled_from(PARTS) | st.text()).map("".join))
def test_whatever_it_is_it_has_tags_with_attributes(markup):
    assert all(name in {"a", "/a"} and isinstance(values, dict) for name, values in tags_of(markup))
