"""What files become, by their content and their names."""

import codecs
import io
import wave

import pytest
from sample_files import encode_image, write_file

from mcp_notebook.content import Audio, Image, Resource, ResourceLink
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.files.file_contents import (
    read_text,
)

PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "plain"),
        ("a.md", "# Title\n\ntext"),
        ("a.json", '{"a": 1}'),
        ("a.py", "def f(): ..."),
        ("a.ts", "let a = 1"),
        ("LICENSE", "may be used"),
        ("a.xyz", "no known type, ä"),
    ],
)
def test_a_texts_file_is_its_text(folder, to_text, name, content):
    assert to_text(write_file(folder / name, content)) == content


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
def test_a_pictures_file_is_the_picture_whatever_its_name(folder, convert, kind):
    data = encode_image(kind)
    for name in (f"a.{kind}", "a.dat"):
        assert convert(write_file(folder / name, data)) == [Image(data, f"image/{kind}")]


def test_a_picture_that_clients_cannot_show_becomes_one_that_they_can(folder, convert):
    [block] = convert(write_file(folder / "scan.tiff", encode_image("tiff")))
    assert block.data.startswith(b"\x89PNG")


def test_a_file_that_only_pretends_to_be_a_picture_is_a_sentence_or_its_text(folder, to_text):
    assert "picture" in to_text(write_file(folder / "a.png", b"\x89PNG\r\n\x1a\n broken \0"))
    assert to_text(write_file(folder / "b.png", "<html>404</html>")) == "<html>404</html>"


def test_a_sounds_file_is_the_sound(folder, convert):
    with wave.open(str(folder / "a.wav"), "wb") as file:
        file.setparams((1, 2, 8_000, 0, "NONE", ""))
        file.writeframes(bytes(200))
    data = (folder / "a.wav").read_bytes()
    assert convert(folder / "a.wav") == [Audio(data, "audio/wav")]
    [text, link] = convert(
        write_file(folder / "b.mp3", b"ID3" + bytes(5_000)), budget=Budget(picture_bytes=2_048)
    )
    assert "b.mp3 (audio/mpeg, 5 kB) is too large" in text.text
    assert link.mime_type == "audio/mpeg"


def test_html_is_shown_as_displays_are_with_a_link_to_its_source(folder, convert, store):
    source = "<html><script>x()</script><p>One</p><p>Two</p></html>"
    [text, link] = convert(write_file(folder / "a.html", source))
    assert "One" in text.text
    assert "script" not in text.text
    assert store.find_format(link.uri).content() == source


def test_a_page_that_is_too_large_to_be_read_is_a_link(folder, convert):
    [text, link] = convert(write_file(folder / "a.html", "<p>a" * 300_000))
    assert "a.html (text/html, 1.2 MB) is too large for the result" in text.text
    assert link.name == "a.html"


@pytest.mark.parametrize(
    ("name", "content", "mime_type"),
    [
        ("report.pdf", PDF, "application/pdf"),
        ("report.pdf", b"%PDF-1.4 all ASCII", "application/pdf"),
        ("a.bin", b"\0\1\2", "application/octet-stream"),
        ("a.fits", b"HEADER " * 2_000 + bytes(100), "image/fits"),
        ("a.csv.gz", b"\x1f\x8b\0", "application/gzip"),
        ("a b.zip", b"PK\3\4\0", "application/zip"),
    ],
)
def test_a_small_file_of_another_kind_is_embedded(folder, convert, name, content, mime_type):
    path = write_file(folder / name, content)
    assert convert(path) == [Resource(path.as_uri(), content, mime_type)]


def test_a_large_file_of_another_kind_is_a_link_that_holds_no_memory(folder, convert, store):
    content = PDF + bytes(5_000)
    path = write_file(folder / "report.pdf", content)
    [text, link] = convert(path, budget=Budget(picture_bytes=2_048), max_resource_bytes=0)
    assert text.text == (
        f"[The file {path} (application/pdf, 5.01 kB) is too large for the result: read "
        "it through the link below.]"
    )
    assert (link.name, link.mime_type, link.size) == ("report.pdf", "application/pdf", 5_015)
    assert store.find_format(link.uri).content() == content
    [entry] = store._entries.values()
    assert entry.original.cost == 0


def test_a_long_text_is_cut_and_the_whole_file_is_a_link(folder, convert, store):
    rows = [f"{i},{i * i}" for i in range(300)]
    path = write_file(folder / "a.txt", "\n".join(rows))
    [text, link] = convert(path, max_result_chars=1_000)
    assert len(text.text) <= 1_000
    assert text.text.startswith("0,0\n1,1\n")
    assert text.text.endswith("299,89401")
    assert "left out" in text.text
    assert store.find_format(link.uri).content() == path.read_text()
    assert link.mime_type == "text/plain"


def test_of_a_very_long_text_the_first_and_last_lines_are_read(folder, convert):
    rows = [f"{i},ä" for i in range(100_000)]
    [text, link] = convert(write_file(folder / "a.txt", "\n".join(rows)), max_result_chars=1_000)
    head, marker, tail = text.text.partition(
        "\n[... the middle of 888,889 bytes is left out ...]\n"
    )
    assert marker
    assert head.split("\n") == rows[: len(head.split("\n"))]
    assert tail.split("\n") == rows[-len(tail.split("\n")) :]
    assert 700 < len(text.text) <= 1_000
    assert isinstance(link, ResourceLink)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (codecs.BOM_UTF8 + b"a", "a"),
        ("Größe;1".encode("cp1252"), "Größe;1"),
        ("\x1b[31mred\x1b[0m", "red"),
    ],
)
def test_the_encoding_is_recognised(folder, to_text, content, text):
    assert to_text(write_file(folder / "a.txt", content)) == text


@pytest.mark.parametrize("most", [0, 10, 100, 1_000, 10_000])
def test_a_text_is_never_longer_than_asked_for(most):
    data = b"line\n" * 10_000
    text, is_whole = read_text(io.BytesIO(data), len(data), "utf-8", most)
    assert len(text) <= most
    assert not is_whole
