"""Encoded images, PIL images and arrays: recognized, measured and scaled down, with real Pillow."""

import io
import struct
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.image_block import Unshowable
from mcp_notebook.kernel.results.blocks.images import (
    convert_array,
    encode_pil_image,
    fit_image,
    is_array,
    is_image,
)

BUDGET = Budget()

np = pytest.importorskip("numpy")
pil = pytest.importorskip("PIL.Image")


def encoded(image, form):
    buffer = io.BytesIO()
    image.save(buffer, form)
    return buffer.getvalue()


@pytest.mark.parametrize("form", ["png", "jpeg", "gif", "webp"])
def test_a_fitting_picture_is_passed_on_byte_for_byte(form):
    data = encoded(pil.new("RGB", (20, 10)), form)
    picture = fit_image(data, BUDGET)
    assert picture.block.data is data
    assert picture.block.mime_type == f"image/{form}"


def test_a_picture_of_another_format_becomes_png():
    assert (
        fit_image(encoded(pil.new("RGB", (20, 10)), "bmp"), BUDGET).block.mime_type == "image/png"
    )


@pytest.mark.parametrize("data", [b"", b"no picture at all", b"\x89PNG\r\n\x1a\nbroken", b"RIFF"])
def test_invalid_bytes_of_a_picture_are_refused_with_a_sentence(data):
    with pytest.raises(ValueError, match=r"not a picture|cannot be read"):
        fit_image(data, BUDGET)


def test_a_picture_of_30_000_pixels_is_not_decoded_but_its_original_is_kept():
    small = encoded(pil.new("1", (1, 1)), "png")
    size = b"IHDR" + struct.pack(">II", 30_000, 30_000) + small[24:29]
    data = small[:12] + size + struct.pack(">I", zlib.crc32(size)) + small[33:]
    with pytest.raises(Unshowable, match="30000x30000 pixels") as caught:
        fit_image(data, BUDGET)
    assert caught.value.original.formats[0].content() is data


@pytest.mark.parametrize(
    "mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "I", "F", "I;16"]
)
@pytest.mark.parametrize("size", [(8, 4), (2_000, 10)])
def test_every_mode_of_pil_can_be_encoded(mode, size):
    picture = encode_pil_image(pil.new(mode, size), BUDGET)
    width, height = pil.open(io.BytesIO(picture.block.data)).size
    assert max(width, height) <= BUDGET.picture_side
    assert bool(picture.notes) == (max(size) > BUDGET.picture_side)


def test_a_photo_is_sent_as_jpeg_when_png_would_be_too_large():
    noise = np.random.default_rng(0).integers(0, 255, (800, 800, 3), dtype="uint8")
    picture = encode_pil_image(pil.fromarray(noise), BUDGET)
    assert picture.block.mime_type == "image/jpeg"
    assert len(picture.block.data) < BUDGET.picture_bytes


def noise(*shape):
    return np.random.default_rng(0).integers(0, 255, shape, dtype="uint8")


def opened(picture):
    return pil.open(io.BytesIO(picture.block.data))


def test_a_large_picture_is_scaled_down_and_its_bytes_are_the_original():
    data = encoded(pil.new("RGB", (3_000, 2_000)), "png")
    picture = fit_image(data, BUDGET)
    assert opened(picture).size == (1_568, 1_045)
    assert picture.notes == ("The picture was scaled down from 3000x2000 to 1568x1045 pixels.",)
    [form] = picture.original.formats
    assert form.content() is data
    assert (form.extension, form.mime_type, form.size) == (".png", "image/png", len(data))


def test_the_original_of_an_image_is_encoded_when_it_is_read_and_as_it_was():
    image = pil.new("RGB", (2_000, 1_000), "red")
    picture = encode_pil_image(image, BUDGET)
    image.paste("blue", (0, 0, 2_000, 1_000))
    original = pil.open(io.BytesIO(picture.original.formats[0].content()))
    assert (original.size, original.getpixel((5, 5))) == ((2_000, 1_000), (255, 0, 0))
    assert picture.original.cost == 2_000 * 1_000 * 3


def test_line_art_stays_png_and_what_is_transparent_stays_so():
    image = pil.new("RGBA", (2_000, 2_000))
    image.paste((255, 0, 0, 255), (100, 100, 1_000, 1_000))
    picture = encode_pil_image(image, BUDGET)
    assert picture.block.mime_type == "image/png"
    assert opened(picture).getpixel((1_500, 1_500))[3] == 0


def test_a_photo_that_lies_on_its_side_is_put_upright():
    exif = pil.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    pil.new("RGB", (3_000, 2_000)).save(buffer, "JPEG", exif=exif)
    picture = fit_image(buffer.getvalue(), BUDGET)
    assert opened(picture).size == (1_045, 1_568)
    assert picture.notes == ("The picture was scaled down from 2000x3000 to 1045x1568 pixels.",)


@pytest.mark.parametrize("form", ["png", "jpeg", "gif", "webp"])
def test_a_picture_that_was_cut_off_is_refused(form):
    data = encoded(pil.fromarray(noise(300, 300, 3)), form)
    with pytest.raises(Unshowable, match="cannot be read"):
        fit_image(data[: len(data) // 2], BUDGET)


def animated(form, size):
    frames = [pil.new("RGB", size, (shade, 0, 0)) for shade in range(0, 200, 40)]
    buffer = io.BytesIO()
    frames[0].save(buffer, form, save_all=True, append_images=frames[1:])
    return buffer.getvalue()


@pytest.mark.parametrize("form", ["GIF", "WEBP"])
def test_an_animation_that_fits_stays_one(form):
    data = animated(form, (60, 40))
    assert fit_image(data, BUDGET).block.data is data


@pytest.mark.parametrize("form", ["GIF", "WEBP"])
def test_of_an_animation_that_does_not_fit_the_first_frame_is_shown(form):
    data = animated(form, (1_800, 40))
    picture = fit_image(data, BUDGET)
    assert picture.block.mime_type == "image/png"
    assert picture.notes[0] == "This is frame 1 of 5."
    assert picture.original.formats[0].content() is data
    with pil.open(io.BytesIO(data)) as image:
        assert encode_pil_image(image, BUDGET).notes == picture.notes


def test_bytes_that_nobody_marked_are_a_picture_only_if_they_surely_are():
    assert is_image(encoded(pil.new("RGB", (5, 5)), "bmp"))
    assert is_image(encoded(pil.new("RGB", (5, 5)), "tiff"))
    assert not is_image(b"BMW, and other cars")
    assert not is_image(b"")


def test_the_authors_format_is_tried_first():
    photo = pil.fromarray(noise(50, 50, 3))
    assert encode_pil_image(photo, BUDGET, "image/jpeg").block.mime_type == "image/jpeg"
    assert encode_pil_image(photo, BUDGET, "image/webp").block.mime_type == "image/webp"
    assert encode_pil_image(photo, BUDGET, "text/plain").block.mime_type == "image/png"


@given(
    mode=st.sampled_from(["1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "I", "F", "I;16"]),
    width=st.integers(1, 300),
    height=st.integers(1, 300),
    side=st.integers(16, 400),
    most=st.integers(1_024, 20_000),
)
def test_every_image_keeps_to_every_budget_and_says_what_was_done(mode, width, height, side, most):
    budget = structs.replace(BUDGET, picture_side=side, picture_bytes=most)
    image = pil.effect_noise((width, height), 90).convert("RGB")
    image = pil.new(mode, (width, height)) if mode.startswith(("I", "F")) else image.convert(mode)
    picture = encode_pil_image(image, budget)
    assert len(picture.block.data) <= most
    assert max(opened(picture).size) <= side
    assert bool(picture.notes) == (
        opened(picture).size != (width, height) or picture.block.mime_type != "image/png"
    )
    assert fit_image(picture.block.data, budget).block.data is picture.block.data


class Tensor:
    """An array of another library."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        if isinstance(self.array, Exception):
            raise self.array
        return self.array


@pytest.mark.parametrize(
    ("array", "mode"),
    [
        (np.zeros((4, 6), "uint8"), "L"),
        (np.zeros((4, 6), bool), "L"),
        (np.zeros((4, 6), "float16"), "L"),
        (np.zeros((4, 6, 1)), "L"),
        (np.zeros((4, 6, 3), "uint8"), "RGB"),
        (np.zeros((4, 6, 3), "float32"), "RGB"),
        (np.zeros((4, 6, 4), "uint8")[::-1, ::-1], "RGBA"),
        (Tensor(np.zeros((4, 6, 3))), "RGB"),
    ],
)
def test_an_array_of_height_and_width_is_an_image(array, mode):
    image = convert_array(array)
    assert (image.size, image.mode) == ((6, 4), mode)


def test_floats_and_bools_are_from_black_to_white():
    floats = np.array([[0, 0.5], [1, 1 + 1e-9]])
    assert np.asarray(convert_array(floats)).tolist() == [[0, 128], [255, 255]]
    assert np.asarray(convert_array(np.eye(2, dtype=bool))).tolist() == [[255, 0], [0, 255]]


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (
            np.zeros((3, 20, 20)),
            r"height x width x 3 or 4 .*, but this array is 3 x 20 x 20, of float",
        ),
        (np.zeros(5), "this array is 5, of"),
        (np.float64(3), "a single number"),
        (np.zeros((2, 2, 2, 2)), "2 x 2 x 2 x 2"),
        (np.zeros((4, 6), int), "4 x 6, of int64"),
        (np.array([["a", "b"]]), "of <U1"),
        (np.array([[-1.0, 2.0]]), "of float64 from -1 to 2"),
        (np.array([[np.nan, 2.0]]), "from nan to nan"),
        (np.zeros((0, 6)), "is 0 x 6"),
        (
            Tensor(RuntimeError("on the GPU")),
            "cannot read an object of type Tensor: RuntimeError: on the GPU",
        ),
    ],
)
def test_an_array_that_is_not_an_image_is_refused_with_what_would_be(array, says):
    with pytest.raises(Unshowable, match=says):
        convert_array(array)


def test_only_a_value_with_an_array_method_is_an_array():
    assert is_array(np.zeros(3))
    assert is_array(Tensor(None))
    assert not is_array([[1, 2]])
    assert not is_array(Tensor)


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png(width, height, *chunks):
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    pixels = _chunk(b"IDAT", zlib.compress(bytes(4)))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + pixels + _chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "make_bomb",  # not while pytest collects: to compress so much takes half a second
    [
        lambda: _png(100_000, 100_000),
        lambda: _png(2**31 - 1, 1),
        lambda: b"GIF89a\xff\xff\xff\xff\0\0\0,\0\0\0\0\xff\xff\xff\xff\0\2;",
        lambda: _png(1, 1, _chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(50 * 2**20)))),
        lambda: _png(1, 1, _chunk(b"iCCP", b"k\0\0" + zlib.compress(bytes(50 * 2**20)))),
    ],
    ids=["area", "width", "gif", "text", "profile"],
)
def test_a_picture_that_would_fill_the_memory_is_not_unpacked(make_bomb):
    bomb = make_bomb()
    tracemalloc.start()
    with pytest.raises((Unshowable, ValueError)):
        fit_image(bomb, BUDGET)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 2**20
