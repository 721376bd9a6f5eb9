"""Documents of an author's own: embedded, or behind a link."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter
from pydantic import AnyUrl, TypeAdapter

from mcp_notebook.content import Resource, ResourceLink, Text
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.embedded import normalize_uri
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.settings.settings import Settings

SMALL = Budget(chars=1_000, picture_bytes=2_048)


def made(value, keep=None):
    store = ResourceStore("k", 10**9)
    settings, keep = Settings(), keep or store.keep
    converter = Converter(DisplayFormatter().format, settings, budget=SMALL, keep=keep)
    return list(converter.make_result(value, ()).content), store


@pytest.mark.parametrize(
    "block",
    [
        Resource("report://today", "text"),
        Resource("report://today", '{"a": 1}', "application/json"),
        Resource("file:///a/b%20c.bin", b"\0\xff", "application/x-own", audience="user"),
        Resource("urn:isbn:123", b"text"),
    ],
)
def test_a_small_document_is_embedded_as_it_is(block):
    assert made(block)[0] == [block]


def test_bytes_without_a_type_get_one_by_their_name():
    assert made(Resource("x://a/b.zip", b"\xff"))[0] == [
        Resource("x://a/b.zip", b"\xff", "application/zip")
    ]
    [block] = made(Resource("x://a", b"\xff"))[0]
    assert block.mime_type == "application/octet-stream"


@pytest.mark.parametrize(
    ("data", "mime_type", "size"),
    [("row,\n" * 1_000, "text/csv", "5,000 characters"), (bytes(5_000), "x/y", "5 kB")],
)
def test_a_large_document_is_a_link_and_its_uri_is_named(data, mime_type, size):
    block = Resource("report://today/all%20rows.csv", data, mime_type, priority=0.5)
    [text, link], store = made(block)
    assert text == Text(
        f"[The resource report://today/all%20rows.csv ({mime_type}, {size}) is too large for "
        "the result: read it through the link below.]",
        priority=0.5,
    )
    assert link.uri.startswith("notebook://k/")
    assert (link.name, link.mime_type, link.priority) == ("all rows.csv", mime_type, 0.5)
    assert store.find_format(link.uri).content() == data


def test_of_a_large_text_that_cannot_be_kept_the_ends_are_shown():
    [block], _ = made(Resource("a:b", "x" * 5_000), keep=lambda _: ())
    assert len(block.data) <= 1_000
    assert "left out" in block.data
    [block], _ = made(Resource("a:b", bytes(5_000)), keep=lambda _: ())
    assert "too large to be kept" in block.text


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        ("https://example.com/a?b=c#d", "https://example.com/a?b=c#d"),
        ("report://a b/ä", "report://a%20b/%C3%A4"),
        ("report.txt", "notebook:///report.txt"),
        ("/data/all rows.csv", "notebook:///data/all%20rows.csv"),
        ("", "notebook:///"),
        ("http://", "notebook:///http%3A//"),
    ],
)
def test_an_invalid_uri_becomes_one_of_the_notebook(given_, kept):
    assert made(Resource(given_, "text"))[0][0].uri == kept
    assert made(ResourceLink(given_, "name"))[0][0].uri == kept


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_strict_clients_take_any_uri(given_):
    TypeAdapter(AnyUrl).validate_python(normalize_uri(given_))


def test_a_path_as_a_uri_is_that_of_the_file(tmp_path):
    path = tmp_path / "all rows.csv"
    for block in (ResourceLink(path, path), Resource(path, "a,b", "text/csv")):
        assert made(block)[0][0].uri == path.as_uri()
    assert made(ResourceLink(path, path))[0][0].name == str(path)


def test_what_a_block_says_about_itself_is_bounded():
    long = "x" * 1_000_000
    link = ResourceLink("file:///d", long, long, long, long)
    [[sent], _] = made(link)
    assert sent.uri == "file:///d"
    assert len(f"{sent.name}{sent.title}{sent.description}{sent.mime_type}") <= 8_000
    [[text], _] = made(ResourceLink(f"data:,{long}", "d"))
    assert text.text == (
        "[ResourceLink(uri) begins with 'data:,xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' and has "
        "1,000,006 characters, at most 8,000 are sent.]"
    )
    [[text], _] = made(Resource(f"file:///{long}", "text"))
    assert text.text.startswith("[Resource(uri) begins with 'file:///xxx")
