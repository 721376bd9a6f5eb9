"""Fixtures for converting values without a running kernel; links to a kernel with calls."""

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


@pytest.fixture(scope="module")
def hasty_kernel(shared_kernel):
    """The kernel of the test's module; it waits a fraction of a second where others wait longer.

    That is for code that does not stop, for a restart after an interrupt, and before a client is
    told that its call waits or runs.
    """
    package = "mcp_notebook.kernel"
    shared_kernel.set_constants(f"{package}.calls.invoker", RESTART_FOLLOWS=0.05)
    shared_kernel.set_constants(f"{package}.calls.stopping", STOP_LIMIT=0.2)
    shared_kernel.set_constants(f"{package}.fork.forked_child", GRACE=0.1)
    notices = {"NOTICE_AFTER": 0.05, "NOTICE_EVERY": 0.1, "HEARTBEAT": 0.1}
    shared_kernel.set_constants(f"{package}.link.call_notices", **notices)
    return shared_kernel
