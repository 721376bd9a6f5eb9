"""All bytes of a result together: no client refuses it, and nothing goes without a word."""

import io
import json
import random

import PIL.Image
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_notebook.bridge.server.forms.result_forms import make_call_form
from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Text
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.fit import fit_bytes, fit_pieces
from mcp_notebook.kernel.results.blocks.originals import discard_original
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.settings.settings import Settings

MOST = 2**20
"""Bytes of a server-sent event that the official Python client takes."""


def budget(keep, most=2**19, pictures=8):
    size = min(most, 2**20)
    return Budget(result_bytes=most, picture_bytes=size, pictures=pictures, keep=keep)


def picture(side=300, form="PNG", seed=0, mode="RGB"):
    pixels = random.Random(seed).randbytes(side * side * len(mode))
    buffer = io.BytesIO()
    PIL.Image.frombytes(mode, (side, side), pixels).save(buffer, format=form, compress_level=1)
    return buffer.getvalue()


NOISE = tuple(picture(seed=seed) for seed in range(8))
"""Each has 270 kB."""


def fit_blocks(blocks, room):
    return fit_pieces(list(map(Piece, blocks)), room)


def kinds(blocks):
    return [type(block).__name__ for block in blocks]


def bytes_in(blocks):
    parts = [getattr(block, "data", b"") for block in blocks]
    return sum(len(json.dumps(part) if isinstance(part, str) else part) for part in parts)


def test_pictures_that_do_not_fit_together_are_made_smaller_and_their_originals_kept(store):
    made = fit_blocks([Image(data) for data in NOISE], budget(store.keep))
    assert kinds(made) == ["Image", "Text", "ResourceLink"] * 8
    assert bytes_in(made) <= 2**19
    assert min(len(block.data) for block in made[::3]) > 20_000
    assert made[1].text == "[The picture was compressed.]"
    assert made[2].title == "The original picture: 300x300 pixels"
    assert store.find_format(made[2].uri).content() == NOISE[0]


def test_small_pictures_stay_sharp_beside_large_ones(store):
    small = picture(50)
    made = fit_blocks([Image(small), *map(Image, NOISE)], budget(store.keep, pictures=9))
    assert made[0] == Image(small)
    assert kinds(made) == ["Image", *["Image", "Text", "ResourceLink"] * 8]


def test_a_picture_that_was_made_smaller_already_keeps_its_first_original(store):
    huge = picture(400)
    values = [PIL.Image.open(io.BytesIO(huge)), *map(PIL.Image.open, map(io.BytesIO, NOISE))]
    converter = Converter(
        lambda *_: ({}, {}),
        Settings(),
        budget=Budget(picture_side=299, pictures=9),
        keep=store.keep,
    )
    made = list(converter.make_result(values, ()).content)
    assert kinds(made) == ["Image", "Text", "ResourceLink"] * 9
    assert "from 400x400 to 299x299 pixels" in made[1].text
    assert made[2].title == "The original picture: 400x400 pixels"


def test_of_what_was_done_to_a_picture_twice_the_last_is_said(store):
    values = [picture(500, seed=seed) for seed in range(3)]
    converter = Converter(lambda *_: ({}, {}), Settings(), keep=store.keep)
    made = list(converter.make_result(values, ()).content)
    assert kinds(made) == ["Image", "Text", "ResourceLink"] * 3
    assert made[1].text.count("The picture") == 1
    assert store.find_format(made[2].uri).content() == values[0]


def test_pictures_with_something_transparent_stay_so(store):
    made = fit_blocks(
        [Image(picture(mode="RGBA", seed=seed)) for seed in range(3)], budget(store.keep, 2**17)
    )
    assert [PIL.Image.open(io.BytesIO(block.data)).mode for block in made[::3]] == ["RGBA"] * 3


def test_sounds_and_documents_that_do_not_fit_become_links(store):
    sound = b"RIFF" + bytes(4) + b"WAVE" + bytes(400_000)
    document = Resource("file:///d.bin", bytes(300_000), "application/octet-stream")
    blocks = [Audio(sound, audience="user"), document, Image(NOISE[0])]
    made = fit_blocks(blocks, budget(store.keep))
    assert kinds(made) == ["Text", "ResourceLink", "Text", "ResourceLink", "Image"]
    assert made[0].text == (
        "[The audio (audio/wav, 400 kB) is too large for the result: read it through the "
        "link below.]"
    )
    assert made[0].audience == made[1].audience == ("user",)
    assert store.find_format(made[1].uri).content() == sound
    assert made[4] == blocks[2], "what the sound would have had goes to the picture"


def test_what_a_sound_takes_is_not_given_to_the_pictures(store):
    sound = Audio(b"RIFF" + bytes(60_000))
    room = budget(store.keep, 2 * len(NOISE[0]) + 10_000)
    made = [
        piece.block for piece in fit_bytes([*map(Piece, map(Image, NOISE[:2])), Piece(sound)], room)
    ]
    assert sound in made
    assert bytes_in(made) <= room.result_bytes


def test_a_result_of_everything_at_its_limits_is_less_than_clients_refuse(store):
    """In ASCII; the structured content alone may have more, in a language that needs more bytes."""
    values = [
        *map(Image, NOISE),
        Audio(b"RIFF" + bytes(4) + b"WAVE" + bytes(2**20 - 8)),
        Resource("file:///d.bin", bytes(2**20)),
        *(Resource(f"file:///{index}", '"' * 25_000) for index in range(50)),
        *[Text('"' * 20_000)] * 5,
    ]
    converter = Converter(lambda *_: ({}, {}), Settings(), keep=store.keep)
    result = converter.make_result(values, ())
    answer = make_call_form(result, "2026-07-28")
    structured_and_meta = 2 * 100_000
    assert len(json.dumps(answer)) + structured_and_meta < MOST


BLOCKS = st.one_of(
    st.sampled_from([Image(data) for data in NOISE]),
    st.builds(Image, st.binary(max_size=5_000)),
    st.builds(Audio, st.binary(max_size=50_000), st.just("audio/x-own")),
    st.builds(Resource, st.just("file:///d"), st.binary(max_size=50_000)),
    st.builds(Resource, st.just("file:///d"), st.text(max_size=20_000)),
    st.builds(Text, st.text(min_size=1)),
    st.just(ResourceLink("file:///d", "d")),
)


@given(st.lists(BLOCKS, max_size=12), st.integers(1_024, 200_000), st.booleans())
@settings(suppress_health_check=[HealthCheck.large_base_example])
def test_any_blocks_fit_together_and_each_is_shown_or_noted(blocks, most, kept):
    keep = ResourceStore("k", 10**9).keep if kept else discard_original
    room = budget(keep, most, pictures=100)
    made = [piece.block for piece in fit_bytes(list(map(Piece, blocks)), room)]
    assert bytes_in(made) <= most
    assert len(made) >= len(blocks)
    for block in blocks:
        if len(getattr(block, "data", "")) == 0:
            assert block in made
