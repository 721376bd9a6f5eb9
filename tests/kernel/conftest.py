"""What makes results without a kernel; modules with other needs have their own."""

import pytest
from IPython.core.formatters import DisplayFormatter

from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.settings import Settings


@pytest.fixture
def formatter():
    return DisplayFormatter()


@pytest.fixture
def store():
    return ResourceStore("k", 10**9)


@pytest.fixture
def converter(formatter, store):
    return Converter(formatter.format, Settings(), keep=store.keep)
