"""Texts on their way into a result: cleaned, joined, and with what the whole of them is."""

from mcp_notebook.content import Image, Text
from mcp_notebook.kernel.results.blocks.piece import (
    CLEANED_WHOLE,
    Piece,
    join_texts,
    make_text_piece,
)


def test_a_text_is_cleaned_and_a_huge_one_only_where_it_is_sent():
    assert make_text_piece("\x1b[1mbold\x1b[0m") == Piece(Text("bold"))
    huge = "\x1b[1m" + "x" * CLEANED_WHOLE
    piece = make_text_piece(huge)
    assert piece.is_raw
    assert piece.block.text is huge


def test_markdown_is_its_own_original_as_a_file_of_its_type():
    (file_format,) = make_text_piece("# a", ".md", "text/markdown").original.formats
    assert (file_format.extension, file_format.mime_type) == (".md", "text/markdown")
    assert file_format.content() == "# a"


def test_plain_neighbours_are_joined_and_a_table_is_ended_by_an_empty_line():
    image = Piece(Image(b"a"))
    pieces = [Piece(Text("a")), Piece(Text("|b|\n|-|")), Piece(Text("c")), image, Piece(Text("d"))]
    texts = [piece.text for piece in join_texts(pieces)]
    assert texts == ["a\n|b|\n|-|\n\nc", "", "d"]


def test_a_text_with_attributes_is_not_joined():
    special = [
        Piece(Text("a", audience="user")),
        Piece(Text("a"), is_partial=True),
        Piece(Text("a"), has_links=True),
    ]
    for piece in special:
        assert join_texts([piece, Piece(Text("b"))]) == [piece, Piece(Text("b"))]
