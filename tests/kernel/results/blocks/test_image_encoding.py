"""Encoding PIL images: the format that fits, the size that fits, and what is said about it."""

from dataclasses import replace

import pytest

from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.image_block import Unshowable
from mcp_notebook.kernel.results.blocks.image_encoding import convert_for_png, encode_image
from mcp_notebook.settings import Settings

np = pytest.importorskip("numpy")
pil = pytest.importorskip("PIL.Image")
BUDGET = Budget.from_settings(Settings())
NOISE = np.random.default_rng(0).integers(0, 255, (200, 200, 4), dtype="uint8")


def test_an_image_that_fits_is_a_png_without_notes():
    encoded = encode_image(pil.new("RGB", (20, 10), "red"), BUDGET)
    assert (encoded.mime_type, encoded.notes) == ("image/png", ())


@pytest.mark.parametrize(("channels", "mime_type"), [(3, "image/jpeg"), (4, "image/webp")])
def test_noise_that_is_too_large_as_a_png_is_compressed(channels, mime_type):
    budget = replace(BUDGET, picture_bytes=60_000)
    encoded = encode_image(pil.fromarray(NOISE[:, :, :channels]), budget)
    assert encoded.mime_type == mime_type
    assert len(encoded.data) <= 60_000


def test_scaling_is_told_with_the_original_size():
    budget = replace(BUDGET, picture_side=100)
    encoded = encode_image(pil.new("L", (200, 50)), budget, original_size=(400, 100))
    assert encoded.notes == ("The picture was scaled down from 400x100 to 100x25 pixels.",)


def test_an_image_without_room_is_refused():
    with pytest.raises(Unshowable, match="does not fit into 10 bytes"):
        encode_image(pil.fromarray(NOISE), replace(BUDGET, picture_bytes=10))


@pytest.mark.parametrize(
    "mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "HSV", "I", "F"]
)
def test_every_mode_becomes_one_that_png_supports(mode):
    assert convert_for_png(pil.new(mode, (2, 2))).mode in {"1", "L", "LA", "P", "RGB", "RGBA"}
