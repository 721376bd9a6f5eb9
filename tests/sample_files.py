"""Files and encoded images for tests."""

import io

import pytest


def write_file(path, content):
    """Write a text or bytes, and return the path."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def encode_image(kind="png", size=(4, 4)):
    """Return a red image in a format of Pillow's."""
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", size, "red").save(data := io.BytesIO(), kind)
    return data.getvalue()
