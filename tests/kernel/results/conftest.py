"""Libraries whose values results show, and the conversion of values in a notebook's folder."""

import pytest
from optional_libraries import pytest_itemcollected  # noqa: F401 - a hook of pytest

from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.settings.settings import Settings


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The notebook's folder, which is the current one."""
    folder = tmp_path / "notebook"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def convert(folder, formatter, store):
    """Return a function that converts a value to blocks, with some settings and a budget."""

    def to_blocks(value, *, budget=None, **limits):
        settings = Settings(**limits)
        converter = Converter(formatter.format, settings, budget=budget, keep=store.keep)
        return list(converter.make_result(value, ()).content)

    return to_blocks


@pytest.fixture
def to_text(convert):
    """Return a function that converts a value to the one text that it must become."""

    def convert_to_text(value, **limits):
        [block] = convert(value, **limits)
        return block.text

    return convert_to_text
