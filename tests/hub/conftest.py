"""A JupyterHub with two users, which all tests of this folder share; all carry the marker `hub`."""

import pytest


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid.startswith("tests/hub/"):
            item.add_marker(pytest.mark.hub)
