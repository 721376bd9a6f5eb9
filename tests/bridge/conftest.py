"""A call in a kernel, as the bridge has it."""

import pytest

from mcp_notebook.bridge.kernels.running_call import RunningCall


@pytest.fixture
def sent():
    """Collect what the bridge sends the kernel for the call."""
    return []


@pytest.fixture
async def call(sent):
    return RunningCall(1, sent.append)
