"""Pictures of one result together: twins, too many of them, and their originals."""

from mcp_notebook.content import Image, ResourceLink, Text
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.fit import fit_pieces
from mcp_notebook.kernel.results.blocks.image_block import describe_encoded_original
from mcp_notebook.kernel.results.blocks.originals import discard_original
from mcp_notebook.kernel.results.blocks.piece import Piece


def small(index):
    original = describe_encoded_original(b"large %d" % index, "image/jpeg", (9_000, 10))
    return Piece(Image(b"small %d" % index, "image/png"), original, ("Smaller.",))


def budget(keep, pictures=8):
    return Budget(pictures=pictures, keep=keep)


def test_a_picture_is_followed_by_what_was_done_and_by_its_original(store):
    picture, note, link = fit_pieces([small(1)], budget(store.keep))
    assert (type(picture), picture) == (Image, Image(b"small 1"))
    assert note == Text("[Smaller.]")
    assert link.title == "The original picture: 9000x10 pixels"
    assert store.find_format(link.uri).content() == b"large 1"


def test_an_original_that_is_too_large_to_be_kept_is_said_to_be():
    _, note = fit_pieces([small(1)], budget(ResourceStore("k", 3).keep))
    assert note == Text("[Smaller. The original is too large to be kept.]")


def test_a_picture_that_was_shown_and_returned_has_one_note_and_one_original(store):
    made = fit_pieces([small(1), Piece(Text("then")), small(1)], budget(store.keep))
    assert [type(block) for block in made] == [Image, Text, ResourceLink, Text]
    assert len(store.links) == 1


def test_of_too_many_pictures_links_stand_in_the_places_of_those_left_out(store):
    pieces = [small(0), Piece(Image(b"one")), Piece(Text("two:")), small(2), small(3)]
    made = fit_pieces(pieces, budget(store.keep, 2))
    kinds = [type(block).__name__ for block in made]
    original = ["Image", "Text", "ResourceLink"]
    assert kinds == [*original, "ResourceLink", "Text", "ResourceLink", *original, "Text"]
    assert [made[3].title, made[5].title] == ["Picture 2 of 4", "Picture 3 of 4"]
    assert store.find_format(made[3].uri).content() == b"one"
    assert store.find_format(made[5].uri).content() == b"large 2"
    assert made[-1].text == ("[2 of 4 pictures are left out; links replace them.]")


def test_where_nothing_is_kept_pictures_are_left_out_alone():
    made = fit_pieces(
        [Piece(Image(b"%d" % index)) for index in range(5)], budget(discard_original, 1)
    )
    assert made == [Image(b"4"), Text("[4 of 5 pictures are left out.]")]
