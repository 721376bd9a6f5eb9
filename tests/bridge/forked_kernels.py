"""Kernels that tests of the bridge and of commands start by forking, in a fraction of the time."""

import sys

import forked_command
import pytest


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
