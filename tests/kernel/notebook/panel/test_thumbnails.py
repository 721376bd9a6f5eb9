"""What a call returned, in small."""

import io
import sys

import PIL.Image
import pytest

from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.kernel.notebook.panel.thumbnails import (
    MAX_BYTES,
    MAX_TEXT,
    SIDES,
    shrink,
    summarize,
)


def encode(image, kind="PNG"):
    image.save(file := io.BytesIO(), kind)
    return file.getvalue()


def noise(size):
    return PIL.Image.effect_noise(size, 200).convert("RGB")


def test_a_text_is_its_first_line_shortened_and_without_escape_codes():
    assert summarize(Result([Text("\n\n  \x1b[31mone\x1b[0m  two \nthree")])) == "one two"
    shown = summarize(Result([Text("x" * 10**6)]))
    assert len(shown) == MAX_TEXT
    assert shown.endswith("…")
    assert summarize(Result()) == ""


def test_other_things_are_counted():
    picture = Image(encode(PIL.Image.new("RGB", (2, 2))))
    blocks = [
        Text("Rain"),
        picture,
        picture,
        Audio(b"OggS"),
        ResourceLink("file:///a", name="a"),
        Resource("file:///b", data="b"),
    ]
    assert summarize(Result(blocks)) == "2 pictures, 1 sound, 1 link, 1 document, Rain"


@pytest.mark.parametrize(
    ("kind", "size"),
    [(kind, (640, 480)) for kind in ("PNG", "JPEG", "WEBP", "GIF")]
    + [("PNG", (1568, 20)), ("PNG", (3, 900))]
    + [
        pytest.param(kind, size, marks=pytest.mark.slow)
        for kind in ("JPEG", "WEBP", "GIF")
        for size in ((1568, 20), (3, 900))
    ],
)
def test_a_picture_becomes_small(kind, size):
    small, mime_type = shrink(encode(noise(size), kind))
    assert mime_type == "image/png"
    assert len(small) <= MAX_BYTES
    with PIL.Image.open(io.BytesIO(small)) as image:
        assert image.width <= SIDES[0]
        assert image.height <= SIDES[1]


def test_a_picture_that_cannot_be_read_is_not_shown():
    assert shrink(b"\x89PNG but not really") is None


def test_without_pil_a_small_png_is_shown_and_nothing_is_imported(monkeypatch):
    small, large = encode(PIL.Image.new("RGB", (9, 9))), encode(noise((300, 300)))
    monkeypatch.delitem(sys.modules, "PIL.Image")
    assert shrink(small) == (small, "image/png")
    assert shrink(large) is None
    assert "PIL.Image" not in sys.modules
