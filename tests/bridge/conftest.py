"""What tests of several rooms of the bridge use."""

import functools
import os
import sys

import forked_command
import pytest

from mcp_notebook.bridge.kernels.running_call import RunningCall


@pytest.fixture
def sent():
    """Collect what the bridge sends the kernel for the call."""
    return []


@pytest.fixture
async def call(sent):
    """A call in a kernel, as the bridge has it."""
    return RunningCall(1, sent.append)


@pytest.fixture
def forked_kernels(monkeypatch):
    """Fork the kernels of notebooks that the test's own process runs (`forked_command`)."""
    from mcp_notebook.bridge.headless import kernel_process  # noqa: PLC0415 - most do without

    usual = kernel_process._KernelManager.format_kernel_cmd
    program = [sys.executable, str(kernel_process._LAUNCHER)]

    def format_forked(self, extra_arguments=None):
        words = usual(self, extra_arguments)
        if words[:2] != program or not forked_command.are_forked:
            return words
        return forked_command.list_words(
            *words[2:],
            module="mcp_notebook.kernel.headless_launcher",
            like=forked_command.KERNEL,
        )

    monkeypatch.setattr(kernel_process._KernelManager, "format_kernel_cmd", format_forked)


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
