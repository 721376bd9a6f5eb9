"""What tests of interrupts share."""

import sys

import pytest
from optional_libraries import pytest_itemcollected  # noqa: F401 - a hook of pytest


@pytest.fixture
def often_switched():
    """Threads that take turns hundreds of times as often, for moments that are random indeed."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.00001)
    yield
    sys.setswitchinterval(before)
