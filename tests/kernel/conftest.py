"""Fixtures for converting values without a running kernel."""

import pytest
from IPython.core.formatters import DisplayFormatter

from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.settings.settings import Settings


@pytest.fixture
def formatter():
    """IPython's formatters as a new kernel has them."""
    return DisplayFormatter()


@pytest.fixture
def store():
    """A store with room for every original."""
    return ResourceStore("k", 10**9)


@pytest.fixture
def converter(formatter, store):
    """A converter with the default settings, which keeps originals in `store`."""
    return Converter(formatter.format, Settings(), keep=store.keep)
