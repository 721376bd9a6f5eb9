"""What sounds become: encoded ones, IPython's."""

import numpy as np
import pytest
from IPython import display
from IPython.core.formatters import DisplayFormatter

from mcp_notebook.content import Audio, ResourceLink
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.outputs import Displayed
from mcp_notebook.settings.settings import Settings

RATE = 8_000
TONE = np.sin(np.linspace(0, 440, RATE)) / 2


def made(value, limit=2**20, outputs=()):
    """Return the blocks of a result, and the store of what did not fit."""
    store = ResourceStore("k", 10**9)
    budget = Budget(picture_bytes=min(limit, 2**19))
    converter = Converter(DisplayFormatter().format, Settings(), budget=budget, keep=store.keep)
    return converter.make_result(value, outputs).content, store


def only_text(value, **options):
    [block], _ = made(value, **options)
    return block.text


def wav(samples=TONE):
    return display.Audio(samples, rate=RATE).data


@pytest.mark.parametrize(
    ("beginning", "mime_type"),
    [
        (wav(), "audio/wav"),
        (b"ID3\x04" + bytes(20), "audio/mpeg"),
        (b"\xff\xfb\x90\x00" + bytes(20), "audio/mpeg"),
        (b"OggS" + bytes(20), "audio/ogg"),
        (b"fLaC" + bytes(20), "audio/flac"),
        (b"\0\0\0\x20ftypM4A \0" + bytes(20), "audio/mp4"),
    ],
)
def test_an_encoded_sound_has_the_type_that_its_bytes_tell(beginning, mime_type):
    for given_ in (beginning, bytearray(beginning), memoryview(beginning)):
        assert made(Audio(given_))[0] == [Audio(beginning, mime_type)]


def test_of_a_type_that_is_not_known_the_author_is_believed():
    block = Audio(b"\xff\xf1data", "audio/aac", audience="user")
    assert made(block)[0] == [block]


@pytest.mark.parametrize("data", [b"RIFF", b"", b"not a sound"])
def test_invalid_bytes_of_a_sound_become_a_sentence(data):
    text = only_text(Audio(data))
    assert "is not encoded audio: give the bytes of a WAV, MP3" in text


@pytest.mark.parametrize("data", [TONE, [0.5], None, "a.mp3", object()])
def test_what_is_not_encoded_becomes_a_sentence_that_names_what_encodes_it(data):
    assert "return `IPython.display.Audio(samples, rate=44_100)`" in only_text(Audio(data))


def test_a_sound_that_is_too_large_is_a_link():
    data = wav(np.tile(TONE, 3))
    [text, link], store = made(Audio(data, priority=1), limit=2_048)
    assert text.text == (
        "[The audio (audio/wav, 48 kB) is too large for the result: read it through the link "
        "below.]"
    )
    assert isinstance(link, ResourceLink)
    assert (link.name, link.mime_type, link.size) == ("sound.wav", "audio/wav", len(data))
    assert text.priority == link.priority == 1
    assert store.find_format(link.uri).content() == data


def test_ipythons_sounds_are_sounds_returned_displayed_or_wrapped():
    shown = display.Audio(TONE, rate=RATE)
    data, _ = DisplayFormatter().format(shown)
    for value, outputs in ((shown, ()), (None, [Displayed(data)]), (Audio(shown), ())):
        [block], _ = made(value, outputs=outputs)
        assert block == Audio(shown.data, "audio/wav")
    [text, link], _ = made(shown, limit=2_048)
    assert "too large for the result" in text.text
    assert link.mime_type == "audio/wav"
