"""Encoding PIL images: the format that fits, the size that fits, and what is said about it."""

import io
from itertools import product

import pytest
from msgspec import structs

from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.image_encoding import encode_image

np = pytest.importorskip("numpy")
pil = pytest.importorskip("PIL.Image")
BUDGET = Budget()
NOISE = np.random.default_rng(0).integers(0, 255, (200, 200, 4), dtype="uint8")


def test_an_image_that_fits_is_a_png_without_notes():
    encoded = encode_image(pil.new("RGB", (20, 10), "red"), BUDGET)
    assert (encoded.block.mime_type, encoded.notes) == ("image/png", ())


@pytest.mark.parametrize(("channels", "mime_type"), [(3, "image/jpeg"), (4, "image/webp")])
def test_noise_that_is_too_large_as_a_png_is_compressed(channels, mime_type):
    budget = structs.replace(BUDGET, picture_bytes=60_000)
    encoded = encode_image(pil.fromarray(NOISE[:, :, :channels]), budget)
    assert encoded.block.mime_type == mime_type
    assert len(encoded.block.data) <= 60_000


def test_scaling_is_told_with_the_original_size():
    budget = structs.replace(BUDGET, picture_side=100)
    encoded = encode_image(pil.new("L", (200, 50)), budget, original_size=(400, 100))
    assert encoded.notes == ("The picture was scaled down from 400x100 to 100x25 pixels.",)


RAMP = np.linspace(0, 1, 100).reshape(10, 10)


@pytest.mark.parametrize(
    ("highest", "kind"),
    [(0.01, "f4"), *product([1, 5, 63, 300, 65_535], ["f4", "i4", "u2"])],
)
def test_numbers_that_would_look_black_or_white_are_shown_as_black_to_white(highest, kind):
    numbers = (RAMP * highest).astype(kind)
    encoded = encode_image(pil.fromarray(numbers), BUDGET)
    assert encoded.notes == (f"Values from 0 to {numbers.max():g} are shown as black to white.",)
    assert read(encoded).getextrema() == (0, 255)


@pytest.mark.parametrize("side", [100, 5])
@pytest.mark.parametrize("mode", ["L", "LA", "La", "P", "RGBA", "RGBa", "CMYK", "1"])
def test_a_picture_in_any_mode_keeps_its_look(mode, side):
    grey = pil.fromarray((RAMP * 255).astype("u1"))
    image = pil.merge("LA", [grey, grey]) if mode == "La" else grey
    image = image.convert({"RGBa": "RGBA", "La": "LA"}.get(mode, mode)).convert(mode)
    found = read(encode_image(image, structs.replace(BUDGET, picture_side=side))).convert("L")
    assert found.size == (min(side, 10),) * 2
    assert found.getpixel((found.width - 1, found.height - 1)) > 230


@pytest.mark.parametrize("side", [100, 5])
def test_a_transparent_color_of_a_palette_stays_transparent(side):
    image = pil.fromarray((RAMP > 0.5).astype("u1")).convert("P")
    image.info["transparency"] = 0
    found = read(encode_image(image, structs.replace(BUDGET, picture_side=side))).convert("RGBA")
    assert found.getchannel("A").getextrema() == (0, 255)


def read(encoded):
    return pil.open(io.BytesIO(encoded.block.data))
