"""The formats of images and sounds, by their first bytes."""

import pytest

from mcp_notebook.kernel.safe.magic_numbers import detect_audio_type, detect_image_type


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (b"\x89PNG\r\n\x1a\n...", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", None),
        (b"BM......", None),
        (b"", None),
    ],
)
def test_an_image_is_known_by_its_beginning(data, mime_type):
    assert detect_image_type(data) == mime_type


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "audio/wav"),
        (b"ID3\x04", "audio/mpeg"),
        (b"OggS\x00", "audio/ogg"),
        (b"fLaC\x00", "audio/flac"),
        (b"\x00\x00\x00\x20ftypM4A ", "audio/mp4"),
        (b"\x00\x00\x00\x20ftypisom", None),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", None),
        (b"", None),
    ],
)
def test_a_sound_is_known_by_its_beginning(data, mime_type):
    assert detect_audio_type(data) == mime_type
