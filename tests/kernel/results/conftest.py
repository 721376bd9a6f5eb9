"""Libraries whose values results show."""

import pytest


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
