"""Encoded pictures: recognised, measured and made smaller, with real PIL."""

import io

import pytest

from mcp_notebook.kernel.budget import Budget
from mcp_notebook.kernel.pictures import from_bytes, from_pil
from mcp_notebook.settings import Settings

BUDGET = Budget.of(Settings())

pil = pytest.importorskip("PIL.Image")


def encoded(image, form):
    buffer = io.BytesIO()
    image.save(buffer, form)
    return buffer.getvalue()


@pytest.mark.parametrize("form", ["png", "jpeg", "gif", "webp"])
def test_a_fitting_picture_is_passed_on_byte_for_byte(form):
    data = encoded(pil.new("RGB", (20, 10)), form)
    picture = from_bytes(data, BUDGET)
    assert picture.data is data
    assert picture.mime_type == f"image/{form}"


def test_a_picture_of_another_format_becomes_png():
    assert from_bytes(encoded(pil.new("RGB", (20, 10)), "bmp"), BUDGET).mime_type == "image/png"


@pytest.mark.parametrize("data", [b"", b"no picture at all", b"\x89PNG\r\n\x1a\nbroken", b"RIFF"])
def test_bytes_that_are_no_picture_are_refused_with_a_sentence(data):
    with pytest.raises(ValueError, match=r"no picture|cannot be read"):
        from_bytes(data, BUDGET)


def test_a_picture_too_large_to_be_decoded_is_refused():
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (30_000).to_bytes(4, "big") * 2 + b"\x08\2\0\0\0"
    with pytest.raises(ValueError, match=r"no picture|cannot be read"):
        from_bytes(header + b"\0" * 100, BUDGET)


@pytest.mark.parametrize(
    "mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "I", "F", "I;16"]
)
@pytest.mark.parametrize("size", [(8, 4), (2_000, 10)])
def test_every_mode_of_pil_can_be_encoded(mode, size):
    picture = from_pil(pil.new(mode, size), BUDGET)
    width, height = pil.open(io.BytesIO(picture.data)).size
    assert max(width, height) <= BUDGET.picture_side
    assert bool(picture.note) == (max(size) > BUDGET.picture_side)


def test_a_photo_is_sent_as_jpeg_when_png_would_be_too_large():
    np = pytest.importorskip("numpy")
    noise = np.random.default_rng(0).integers(0, 255, (800, 800, 3), dtype="uint8")
    picture = from_pil(pil.fromarray(noise), BUDGET)
    assert picture.mime_type == "image/jpeg"
    assert len(picture.data) < BUDGET.picture_bytes


def test_a_picture_without_pixels_is_refused():
    with pytest.raises(ValueError, match="nothing to show"):
        from_pil(pil.new("RGB", (0, 5)), BUDGET)
