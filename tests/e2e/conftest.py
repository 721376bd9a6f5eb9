"""Live notebooks for all end-to-end tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from clients import SHOWS_VIEWS, TRANSPORTS, connected, http_bridge, over_http
from live import LiveKernel, live_kernel

SELDOM = {("legacy", "http"), ("auto", "stdio")}
"""Of the four pairs of era and transport, the two left to the slow tests: in the other two, each
era and each transport runs."""
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items):
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if (parameters.get("era"), parameters.get("transport")) in SELDOM:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow"):  # of a test for a minute, only what is no slow case
            item.own_markers = [mark for mark in item.own_markers if mark.name != "smoke"]


@contextmanager
def _opened(home: Path, name: str) -> Iterator[LiveKernel]:
    """Run all cells of a notebook, as somebody who has it open."""
    path = NOTEBOOKS / name
    with live_kernel(home, notebook=str(path)) as kernel:
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                kernel.ok(cell.source)
        yield kernel


@pytest.fixture(params=TRANSPORTS)
def transport(request):
    """Every way in which a client may reach the bridge."""
    return request.param


@pytest.fixture(scope="module")
def weather(module_home):
    """A kernel in which somebody has run notebooks/weather.ipynb."""
    with _opened(module_home, "weather.ipynb") as kernel:
        yield kernel


@pytest.fixture(scope="module")
def served(module_home):
    """An HTTP bridge for a module's kernel, and for tests that leave it as it is."""
    with http_bridge(module_home) as served:
        yield served


@pytest.fixture
def connect(request, module_home):
    """Return what connects a client: over HTTP to the module's one bridge, which takes a second."""

    def connect_to(era, transport, **options):
        if transport == "http":
            return over_http(request.getfixturevalue("served").url, era, **options)
        return connected(module_home, era, transport, **options)

    return connect_to


@pytest.fixture
def host(connect):
    """Return what connects a client that shows live views."""

    def connect_host(era, transport, **options):
        shown = {"shows_views": True} if transport == "http" else {"extensions": SHOWS_VIEWS}
        return connect(era, transport, **shown, **options)

    return connect_host
