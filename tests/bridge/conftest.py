"""What tests of several rooms of the bridge use."""

import functools
import os

import pytest
from forked_kernels import forked_kernels

from mcp_notebook.bridge.kernels.running_call import RunningCall

__all__ = ["forked_kernels"]


@pytest.fixture
def sent():
    """Collect what the bridge sends the kernel for the call."""
    return []


@pytest.fixture
async def call(sent):
    """A call in a kernel, as the bridge has it."""
    return RunningCall(1, sent.append)


@functools.cache
def _make_ssl_context(_variables, make, options):
    return make(**dict(options))


@pytest.fixture
def shared_certificates(monkeypatch):
    """Read the certificates of authorities once for all clients of HTTP: each takes 60 ms."""
    from httpx2._transports import default  # noqa: PLC0415 - most do without

    make = default.create_ssl_context

    def share(**options):
        variables = tuple(os.environ.get(f"SSL_CERT_{name}") for name in ("FILE", "DIR"))
        return _make_ssl_context(variables, make, tuple(options.items()))

    monkeypatch.setattr(default, "create_ssl_context", share)
