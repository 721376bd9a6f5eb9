"""Where headless notebooks of tests lie."""

import pytest
from live import kernel_env


@pytest.fixture
def folder(home, monkeypatch):
    """An empty folder for notebooks; kernels keep within the test's home."""
    for name, value in kernel_env(home).items():
        monkeypatch.setenv(name, value)
    (home / "work").mkdir()
    return home / "work"
