"""Icons: addresses as they are, files as data addresses."""

import base64
import io
from pathlib import Path

import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal_of

from mcp_notebook import Icon
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.icons import read_icons

SVG = (
    b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- <a/> -->\n'
    b'<svg xmlns="http://www.w3.org/2000/svg"><path d="M0"/></svg>'
)


def info(icon):
    (info,) = read_icons([icon], "f")
    return info


def refusal(icon):
    message = refusal_of(read_icons, [icon], "f")
    assert message.startswith("`f`: ")
    return message


def encoded(kind, size=(48, 32), mode="RGB"):
    PIL.Image.new(mode, size, 120).save(data := io.BytesIO(), kind)
    return data.getvalue()


def decoded(src):
    return base64.b64decode(src.partition(",")[2])


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
@pytest.mark.parametrize("as_type", [str, Path])
def test_a_file_becomes_a_data_address_with_its_type(tmp_path, kind, as_type):
    path = tmp_path / "icon.of-any-name"
    path.write_bytes(encoded(kind))
    found = info(as_type(path))
    assert found["src"].startswith(f"data:image/{kind};base64,")
    assert decoded(found["src"]) == encoded(kind)
    assert found == {"src": found["src"], "mimeType": f"image/{kind}"}


def test_a_file_named_svg_is_one(tmp_path):
    (tmp_path / "icon.svg").write_bytes(SVG)
    found = info(tmp_path / "icon.svg")
    assert decoded(found["src"]) == SVG
    assert found["mimeType"] == "image/svg+xml"


def test_what_the_author_says_of_an_icon_is_told():
    icon = Icon(
        "https://example.com/a.png", mime_type="image/png", sizes=["16x16", "any"], theme="dark"
    )
    assert info(icon) == {
        "src": "https://example.com/a.png",
        "mimeType": "image/png",
        "sizes": ["16x16", "any"],
        "theme": "dark",
    }
    assert info(Icon("https://example.com/a.png", sizes="48x48"))["sizes"] == ["48x48"]
    with pytest.raises(AttributeError):
        icon.theme = "light"


@pytest.mark.parametrize(
    "address",
    [
        "data:image/png;base64," + base64.b64encode(encoded("png")).decode(),
        "data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'/%3E",
        "data:image/svg+xml;charset=utf-8;base64," + base64.b64encode(SVG).decode(),
        "data:image/x-icon;base64,AAABAA==",
        "HTTPS://example.com:8080/a%20b.png?x=1#y",
    ],
)
def test_an_address_is_passed_as_it_is(address):
    found = info(address)
    assert found["src"] == address
    if "png;" in address:
        assert found["mimeType"] == "image/png"


@pytest.mark.parametrize(
    ("src", "said"),
    [
        ("http://example.com/a.png", "not an address that clients take"),
        ("javascript:alert(1)", "not an address that clients take"),
        ("file:///a.png", "or the path of a file"),
        ("https://", "not an address that clients take"),
        ("https://example.com/a b.png", "not an address that clients take"),
        ("https://example.com/\ud800.png", "not an address that clients take"),
        ("https://example.com/" + "a" * 5_000, "not an address that clients take"),
        ("data:text/html,<b>x</b>", "not an address that clients take"),
        ("data:image/png;base64," + "A" * 100_000, "more than 65,536 bytes"),
        ("no such file.png", "cannot be read"),
        ("", "cannot be read"),
        ("\0", "cannot be read"),
        ("~nobody-of-this-name/a.png", "cannot be read"),
        ("a" * 5_000, "cannot be read"),
        ("/dev/null", "not a picture"),
        (b"bytes", "of type bytes"),
        (None, "of type NoneType"),
        (PIL.Image.new("RGB", (5, 5)), "of type Image"),
        (Icon("https://e.org/a", theme="pink"), "theme 'pink'"),
        (Icon("https://e.org/a", theme=["dark"]), "theme ['dark']"),
        (Icon("https://e.org/a", sizes="big"), "sizes 'big'"),
        (Icon("https://e.org/a", sizes=[48]), "sizes [48]"),
        (Icon("https://e.org/a", mime_type="text/html"), "MIME type 'text/html'"),
        (Icon("https://e.org/a", mime_type=5), "MIME type 5"),
    ],
)
def test_an_invalid_icon_is_refused_in_one_sentence(src, said):
    assert said in refusal(src)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a picture"),
        (b"hello", "not a picture"),
        (b"\x89PNG\r\n\x1a\n" + b"x" * 100_000, "more than 65,536 bytes"),
    ],
)
def test_a_file_that_is_not_an_icon_is_refused_with_the_reason(tmp_path, data, said):
    path = tmp_path / "a.png"
    path.write_bytes(data)
    message = refusal(path)
    assert said in message
    assert "a.png" in message


@given(st.text() | st.binary().map(lambda data: "data:image/png;base64," + data.decode("latin-1")))
def test_no_text_does_anything_but_be_an_icon_or_be_refused(text):
    try:
        told = info(text)["src"]
    except DefinitionError as error:
        told = str(error)
    assert told == text or told.startswith("`f`: ")


def test_a_tool_has_few_icons():
    with pytest.raises(DefinitionError, match="5 icons are too many"):
        read_icons(["https://example.com/a.png"] * 5, "f")
