"""A live notebook for all end-to-end tests."""

from pathlib import Path

import nbformat
import pytest
from live import live_kernel

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.fixture(scope="module")
def weather(module_home):
    """A kernel in which somebody has run notebooks/weather.ipynb."""
    path = NOTEBOOKS / "weather.ipynb"
    with live_kernel(module_home, notebook=str(path)) as kernel:
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                kernel.ok(cell.source)
        yield kernel
