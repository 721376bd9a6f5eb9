"""What sounds become: encoded ones, samples, IPython's."""

import io
import math
import wave

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from IPython import display
from IPython.core.formatters import DisplayFormatter

from mcp_notebook.content import Audio, ResourceLink, Text
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.blocks import audio
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.outputs import Displayed
from mcp_notebook.settings.settings import Settings

RATE = 8_000
TONE = np.sin(np.linspace(0, 440, RATE)) / 2


def made(value, limit=2**20, outputs=()):
    """Return the blocks of a result, and the store of what did not fit."""
    store = ResourceStore("k", 10**9)
    settings_ = Settings(max_picture_bytes=limit)
    converter = Converter(DisplayFormatter().format, settings_, keep=store.keep)
    return converter.make_result(value, outputs).content, store


def played(block):
    """Return a WAV's samples, a column for each channel, and its rate."""
    with wave.open(io.BytesIO(block.data), "rb") as file:
        assert file.getsampwidth() == 2
        frames = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return frames.reshape(-1, file.getnchannels()), file.getframerate()


def only_text(value, **options):
    [block], _ = made(value, **options)
    return block.text


def wav(samples=TONE, rate=RATE):
    [block], _ = made(Audio(samples, rate=rate))
    return block.data


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
    assert "are not audio in a known format: give WAV, MP3, Ogg, FLAC or M4A" in text


def test_floats_are_samples_from_minus_1_to_1():
    levels, rate = played(made(Audio(TONE, rate=RATE))[0][0])
    assert rate == RATE
    assert levels.shape == (RATE, 1)
    assert np.allclose(levels[:, 0] / 32_767, TONE, atol=1e-4)


def test_a_list_is_samples_too():
    levels, _ = played(made(Audio([0.0, 1.0, -1.0], rate=RATE))[0][0])
    assert levels[:, 0].tolist() == [0, 32_767, -32_767]
    levels, _ = played(made(Audio([0, 1_000, -1_000], rate=RATE))[0][0])
    assert levels[:, 0].tolist() == [0, 1_000, -1_000]


def test_two_channels_may_be_rows_or_columns():
    left, right = TONE, -TONE
    for samples in (np.array([left, right]), np.array([left, right]).T):
        levels, _ = played(made(Audio(samples, rate=RATE))[0][0])
        assert levels.shape == (RATE, 2)
        assert np.array_equal(levels[:, 0], -levels[:, 1])
    assert played(made(Audio(left[None, :], rate=RATE))[0][0])[0].shape == (RATE, 1)


@pytest.mark.parametrize(
    ("kind", "given_", "level"),
    [
        ("i2", -300, -300),
        ("i1", -128, -32_768),
        ("u1", 128, 0),
        ("u1", 255, 32_512),
        ("u2", 0, -32_768),
        ("i4", 2**31 - 1, 32_767),
        ("i8", 2**31 - 1, 32_767),
        (">i2", 5, 5),
        ("f2", 1, 32_767),
    ],
)
def test_integers_are_as_loud_as_their_type_says(kind, given_, level):
    levels, _ = played(made(Audio(np.array([given_], kind), rate=RATE))[0][0])
    assert levels.tolist() == [[level]]


def test_samples_that_are_too_loud_are_made_quieter_and_it_is_said():
    [sound, note], _ = made(Audio([0.0, 2.0, math.nan, -1.0], rate=RATE, audience=["user"]))
    assert played(sound)[0][:, 0].tolist() == [0, 32_767, 0, -16_384]
    assert note.text == "The audio was made quieter: its samples reach 2, above the maximum of 1."
    assert sound.audience == note.audience == ("user",)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (
            Audio(TONE),
            "`rate` of audio samples is missing: write `Audio(samples, rate=44_100)`",
        ),
        (Audio(TONE, rate=0), "cannot be 0"),
        (Audio(TONE, rate=True), "cannot be True"),
        (Audio(TONE, rate="44100"), "cannot be 44100"),
        (Audio(TONE, rate=math.nan), "cannot be nan"),
        (Audio(TONE, rate=10**400), "cannot be 1000"),
        (Audio(np.zeros((3, 3)), rate=8), "of shape (3, 3) cannot be played"),
        (Audio(np.zeros((2, 2, 2)), rate=8), "of shape (2, 2, 2)"),
        (Audio(np.float64(1), rate=8), "of shape ()"),
        (Audio([], rate=8), "has no samples"),
        (Audio(np.zeros((0, 2)), rate=8), "has no samples"),
        (Audio([1j], rate=8), "a list of complex128"),
        (Audio([True], rate=8), "a list of bool"),
        (Audio([2**40], rate=8), "at most 32 bits"),
        (Audio([[1], [2, 3]], rate=8), "No audio can be made of a list"),
        (Audio(object(), rate=8), "No audio can be made of a object"),
        (Audio(None), "No audio can be made of a NoneType"),
        (Audio("a.mp3"), "takes no file name: return a `Path`"),
    ],
)
def test_an_invalid_sound_becomes_a_sentence(block, said):
    assert said in only_text(block)


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


def test_many_samples_are_encoded_when_they_are_read():
    samples = np.tile(TONE, 3)
    [text, link], store = made(Audio(samples, rate=RATE), limit=2_048)
    assert "(audio/wav, 3.0 s at 8000 Hz, 48 kB)" in text.text
    assert store.find_format(link.uri).content() == wav(samples)
    assert link.size == len(wav(samples))


def test_samples_are_kept_as_they_were():
    samples = np.tile(TONE, 3)
    expected = wav(samples)
    [_, link], store = made(Audio(samples, rate=RATE), limit=2_048)
    samples[:] = 0
    assert store.find_format(link.uri).content() == expected


def test_a_long_sound_is_as_loud_everywhere():
    samples = np.zeros((300_000, 2), "f4")
    samples[-1] = [2, -4]
    data, note = audio.encode_wav(samples, RATE)
    levels, _ = played(Audio(data))
    assert levels.shape == samples.shape
    assert levels[-1].tolist() == [16_384, -32_767]
    assert not levels[:-1].any()
    assert "reach 4" in note


def test_what_cannot_be_kept_says_so():
    converter = Converter(DisplayFormatter().format, Settings(max_picture_bytes=2_048))
    [block] = converter.make_result(Audio(np.zeros(10**5), rate=RATE), ()).content
    assert "too large to be kept" in block.text


def test_ipythons_sounds_are_sounds_returned_displayed_or_wrapped():
    shown = display.Audio(TONE, rate=RATE)
    data, _ = DisplayFormatter().format(shown)
    for value, outputs in ((shown, ()), (None, [Displayed(data)]), (Audio(shown), ())):
        [block], _ = made(value, outputs=outputs)
        assert block == Audio(shown.data, "audio/wav")
    [text, link], _ = made(shown, limit=2_048)
    assert "too large for the result" in text.text
    assert link.mime_type == "audio/wav"


@given(
    arrays.arrays(
        st.one_of(
            arrays.integer_dtypes(),
            arrays.unsigned_integer_dtypes(),
            arrays.floating_dtypes(),
            arrays.boolean_dtypes(),
            arrays.complex_number_dtypes(),
        ),
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
    ),
    st.one_of(st.none(), st.integers(), st.floats(), st.just(RATE)),
)
def test_any_samples_give_a_sound_or_a_sentence(samples, rate):
    blocks, _ = made(Audio(samples, rate=rate))
    assert blocks
    for block in blocks:
        if isinstance(block, Audio):
            levels, _ = played(block)
            assert levels.size == samples.size
        else:
            assert isinstance(block, Text)
            assert block.text
