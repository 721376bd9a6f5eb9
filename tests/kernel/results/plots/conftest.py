"""Fixtures for plots: the libraries that make them, and the originals that are kept."""

import json

import pytest

from mcp_notebook.content import ResourceLink
from mcp_notebook.kernel.results.plots import draw


@pytest.fixture
def px():
    return pytest.importorskip("plotly.express")


@pytest.fixture
def alt():
    return pytest.importorskip("altair")


@pytest.fixture
def undrawn(monkeypatch):
    """Make kaleido and vl-convert unavailable."""
    monkeypatch.setattr(draw, "find_spec", lambda _: None)


@pytest.fixture
def read_original(store):
    """Return a function that reads the original behind a link, and parses it if it is JSON."""

    def read(link):
        assert isinstance(link, ResourceLink)
        content = store.find_format(link.uri).content()
        return json.loads(content) if link.name.endswith(".json") else content

    return read
