"""Content blocks that authors make: checked, and made of other values."""

import dataclasses

import pytest
from contents import only_text

from mcp_notebook.content import Image, Text


def test_an_image_with_invalid_bytes_becomes_a_sentence(converter):
    text = only_text(converter.make_result(Image(b"nope"), ()))
    assert text == (
        "[4 bytes beginning with 6e 6f 70 65 are not a picture: give PNG, JPEG, WebP or GIF.]"
    )


def test_an_image_made_of_something_else_becomes_a_sentence(converter):
    text = only_text(converter.make_result(Image("chart.png"), ()))
    assert text == (
        "[Image(data) takes a picture's encoded bytes, a PIL image or an array, not an object of "
        "type str: for a file, Image(pathlib.Path(path).read_bytes()).]"
    )


def test_what_a_block_is_made_of_keeps_what_the_block_says(converter, plt):
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    said = {"audience": ("user",), "priority": 0.5, "last_modified": "2025-01-12"}
    picture, _line = converter.make_result(Image(figure, **said), ()).content
    assert picture == Image(picture.data, "image/png", **said)
    pandas = pytest.importorskip("pandas")
    [table] = converter.make_result(Text(pandas.DataFrame({"a": [1]}), **said), ()).content
    assert table == Text(table.text, **said)
    assert "DataFrame: 1 row" in table.text
    assert converter.make_result(Text(5, **said), ()).content == [Text("5", **said)]
    assert converter.make_result(Text([1, "a"]), ()).content == [Text('[1,"a"]')]


def test_a_block_of_a_class_that_checks_nothing_is_checked(converter):
    @dataclasses.dataclass(frozen=True)
    class Own(Text):
        note: str = ""

        def __post_init__(self):
            pass

    assert converter.make_result(Own("a", "n", audience="user"), ()).content == [
        Text("a", audience="user")
    ]
    text = only_text(converter.make_result(Own("a", audience="dog"), ()))
    assert text.startswith("A value of type Own cannot be shown: ValueError: `audience` is 'user'")
