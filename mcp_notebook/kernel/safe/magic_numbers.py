"""What encoded bytes are, by how they begin."""

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def mime_type_of(data: bytes) -> str | None:
    """Return the type of an encoded picture by its first bytes, None if it is none we send."""
    for beginning, mime_type in _BEGINNINGS:
        if data.startswith(beginning):
            return mime_type
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None
