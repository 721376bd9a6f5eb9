"""Tables of cases of several libraries."""

from optional_libraries import pytest_itemcollected  # noqa: F401 - a hook of pytest
