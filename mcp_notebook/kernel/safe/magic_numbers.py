"""Recognizes the formats of encoded images and audio by their first bytes.

Pure functions, on any thread.
"""

_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_MP3 = (b"ID3", b"\xff\xfb", b"\xff\xfa", b"\xff\xf3", b"\xff\xf2")


def detect_image_type(data: bytes) -> str | None:
    """Return the MIME type of an encoded image, or None if clients cannot show its format."""
    for beginning, mime_type in _IMAGES:
        if data.startswith(beginning):
            return mime_type
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def detect_audio_type(data: bytes) -> str | None:
    """Return the MIME type of encoded audio, or None if its format is unknown."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "audio/wav"
    if data.startswith(_MP3):
        return "audio/mpeg"
    if data.startswith(b"OggS"):
        return "audio/ogg"
    if data.startswith(b"fLaC"):
        return "audio/flac"
    return "audio/mp4" if data[4:8] == b"ftyp" and data[8:11] in (b"M4A", b"M4B") else None
