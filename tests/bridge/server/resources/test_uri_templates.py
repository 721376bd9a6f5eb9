"""The values of a template's variables in a URI; the official SDK's matcher is the judge."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mcp.shared.uri_template import UriTemplate

from mcp_notebook.bridge.server.resources.uri_templates import MAX_MATCHED, match, match_any


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("doc://{name}", "doc://a..b", {"name": "a..b"}),
        ("doc://{name}", "doc://%C3%BC%20x", {"name": "\xfc x"}),
        ("doc://{name}", "doc://9:30", {"name": "9:30"}),
        ("doc://{+path}", "doc://a/b%2Fc.csv", {"path": "a/b/c.csv"}),
        ("doc://all{?file}", "doc://all?file=a/b", {"file": "a/b"}),
    ],
)
def test_other_values_of_a_template_are_read(template, uri, values):
    assert match(template, uri) == values


@st.composite
def templates(draw):
    template, takes_slashes = "a://" + draw(st.sampled_from(["", "x", "/", "-"])), False
    for number in range(draw(st.integers(0, 4))):
        if number:
            template += draw(st.sampled_from(["x", "/", "-", ".", "xx", "ab"]))
        plus = "" if takes_slashes else draw(st.sampled_from(["", "+"]))
        takes_slashes = takes_slashes or bool(plus)
        template += f"{{{plus}v{number}}}"
    return template + draw(st.sampled_from(["", "x", "/c", ".csv", "{?q,r}", "/c{?q}"]))


@given(
    templates(),
    st.text("xab/-.c?#&,=qr%41v", max_size=12),
    st.sampled_from(["", "?q=1", "?r=2&q=%20", "?q", "?=&q=a&q=b", "?%71=1", "#f"]),
)
def test_a_uri_is_matched_as_the_official_sdk_does(template, path, query):
    uri = f"a://{path}{query}"
    assert match_any(template, uri) == UriTemplate.parse(template).match(uri)


@given(templates(), st.lists(st.text(min_size=1, max_size=8), min_size=4, max_size=4))
def test_what_the_official_sdk_expands_is_read_back(template, values):
    parsed = UriTemplate.parse(template)
    given_values = {name: values[int(name[1:])] for name in parsed.variable_names if name[0] == "v"}
    uri = parsed.expand(given_values)
    read = match_any(template, uri)
    assume(parsed.match(uri) == given_values)  # "a.b" and "c" are "a" and "b.c" as well
    assert read == given_values


@pytest.mark.parametrize("text", ["-" * 60_000, "x-" * 30_000, "a" * 60_000])
def test_no_uri_takes_long(text):
    assert match("a://{a}-{b}-{c}-{d}-{e}x", f"a://{text}") is None
    assert match("a://{a}", "a://" + "a" * MAX_MATCHED) is None
