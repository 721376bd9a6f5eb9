"""Pictures written as base64 become pictures, other base64 a line."""

import base64
import dataclasses
import io
import json

import pytest

from mcp_notebook.content import Image, Text

pil = pytest.importorskip("PIL.Image")
numpy = pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def png():
    noise = numpy.random.default_rng(0).integers(0, 255, (60, 60, 3), "uint8")
    buffer = io.BytesIO()
    pil.fromarray(noise).save(buffer, "PNG")
    return buffer.getvalue()


@dataclasses.dataclass
class Report:
    title: str
    plot: str


def encode(beginning):
    return base64.b64encode(beginning + bytes(3_000)).decode()


def make(name, letters):
    """Return a value that holds the base64 of a picture, and the texts beside the picture."""
    url = f"data:image/png;base64,{letters}"
    wrapped = base64.encodebytes(base64.b64decode(letters)).decode()
    urlsafe = letters.replace("+", "-").replace("/", "_")
    return {
        "base64": (letters, []),
        "bytes": (letters.encode(), []),
        "without padding": (letters.rstrip("="), []),
        "in lines": (wrapped, []),
        "for addresses": (urlsafe, []),
        "data URL": (url, []),
        "Markdown": (f"# Sales\n![the plot]({url})\nUp.", ["# Sales\n[picture 1]\nUp."]),
        "Markdown alone": (f'![the plot]({url} "title")\n', []),
        "HTML": (f'<img class="a" src="{url}" alt="b">', []),
        "dict": ({"plot": letters, "n": 3}, ["plot:\n[picture 1]\n\nn: 3"]),
        "list": ([url, "a"], ["[picture 1]\na"]),
        "list of dicts": ([{"plot": url}], ["plot:\n[picture 1]"]),
        "dataclass": (
            Report("Sales", letters),
            ["title: Sales\nplot:\n\n[picture 1]"],
        ),
        "JSON": (
            json.dumps({"plot": wrapped.strip(), "n": 3}),
            ['{"plot": "[picture 1]", "n": 3}'],
        ),
        "block": (Text(url), []),
    }[name]


WAYS = [
    *("base64", "bytes", "without padding", "in lines", "for addresses", "data URL", "Markdown"),
    *("Markdown alone", "HTML", "dict", "list", "list of dicts", "dataclass", "JSON", "block"),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_picture_in_letters_is_a_picture(converter, png, way):
    value, expected = make(way, base64.b64encode(png).decode())
    content = converter.make_result(value, ()).content
    assert [block.data for block in content if isinstance(block, Image)] == [png]
    texts = [block.text.strip() for block in content if isinstance(block, Text)]
    assert texts == expected


def test_so_is_one_that_is_printed_or_displayed(converter, png):
    from mcp_notebook.kernel.results.outputs import Displayed, Printed  # noqa: PLC0415

    url = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    outputs = [Printed(f"plot: {url}\nnext\n"), Displayed({"text/markdown": f"![]({url})"})]
    text, picture = converter.make_result(None, outputs).content
    assert text.text == "plot: [picture 1]\nnext"
    assert picture.data == png


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("data:audio/wav;base64," + "ABCD" * 5_000, "[audio/wav as base64, 20,000 characters: "),
        (encode(b"%PDF-1.7"), "[application/pdf as base64, 4,012 characters: return the bytes in"),
        (encode(b"RIFF\x24\x08\0\0WAVEfmt "), "[audio/wav as base64, 4,024 characters: return"),
        ("iVBORw0KGgo" + "A" * 30_000, "[image/png as base64, 30,011 characters: return the fig"),
        (
            Report("Sales", "iVBORw0KGgo" + "ABCD" * 10_000),
            "title: Sales\nplot:\n\n[image/png as base64, 40,011 characters: return the figure",
        ),
        ("data:image/svg+xml;charset=utf-8;base64," + "PHN2" * 99, "[image/svg+xml as base64, 396"),
    ],
)
def test_other_base64_is_a_line(converter, value, says):
    block = converter.make_result(value, ()).content[0]
    assert block.text.startswith(says)
    assert len(block.text) < 200


@pytest.mark.parametrize(
    "value",
    ["iVBORw0KGgo is how a PNG begins", "data:image/png;base64,iVBORw0KGgo=", "ABCD" * 500],
)
def test_all_else_stays_as_it_is(converter, value):
    assert converter.make_result(value, ()).content == [Text(value)]
