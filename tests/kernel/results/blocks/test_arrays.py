"""``Image(array)``: which arrays are pictures, and what is said about others."""

import pytest

from mcp_notebook.kernel.results.blocks.arrays import image_of, is_array
from mcp_notebook.kernel.results.blocks.image_block import Unshowable

np = pytest.importorskip("numpy")
pytest.importorskip("PIL.Image")


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
def test_what_is_a_picture(array, mode):
    image = image_of(array)
    assert (image.size, image.mode) == ((6, 4), mode)


def test_floats_and_bools_are_from_black_to_white():
    floats = np.array([[0, 0.5], [1, 1 + 1e-9]])
    assert np.asarray(image_of(floats)).tolist() == [[0, 128], [255, 255]]
    assert np.asarray(image_of(np.eye(2, dtype=bool))).tolist() == [[255, 0], [0, 255]]


def test_all_rows_of_a_tall_array_are_converted():
    tall = np.linspace(0, 1, 1_000).reshape(1_000, 1)
    shown = np.asarray(image_of(tall))
    assert (shown[0, 0], shown[500, 0], shown[-1, 0]) == (0, 128, 255)


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros((3, 20, 20)), "3 x 20 x 20. Move the colours to the end: numpy.moveaxis"),
        (np.zeros(5), "this array is 5."),
        (np.float64(3), "a single number"),
        (np.zeros((2, 2, 2, 2)), "2 x 2 x 2 x 2"),
        (np.zeros((4, 6), int), "of int64: scale its values .*astype"),
        (np.array([["a", "b"]]), "of <U1"),
        (np.array([[-1.0, 2.0]]), "floats from -1 to 2: scale it"),
        (np.array([[np.nan, 2.0]]), "NaN or infinite"),
        (np.zeros((0, 6)), "without elements"),
        (Tensor(RuntimeError("on the GPU")), "cannot read a Tensor: RuntimeError: on the GPU"),
    ],
)
def test_what_is_none_is_told_what_would_be(array, says):
    with pytest.raises(Unshowable, match=says):
        image_of(array)


def test_only_what_has_an_array_is_one():
    assert is_array(np.zeros(3))
    assert is_array(Tensor(None))
    assert not is_array([[1, 2]])
    assert not is_array(Tensor)
