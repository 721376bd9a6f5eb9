"""Libraries in tables of cases, which are made also where one of them is missing.

A test of a case with something of polars, or with its name, gets the mark ``needs("polars")``
(`pytest_itemcollected`, which a folder's ``conftest.py`` imports). One that needs it otherwise has
the mark written above it.
"""

import inspect
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

NAMES = ("polars", "pyarrow")


class Missing:
    """Stands for all that a missing library has, in tests that are skipped."""

    def __init__(self, name: str) -> None:
        self.__module__ = name

    def __getattr__(self, name: str) -> "Missing":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: object, **__: object) -> "Missing":
        return self

    def __repr__(self) -> str:
        return f"missing {self.__module__}"

    def __instancecheck__(self, _: object) -> bool:
        return False


def import_optional(name: str) -> ModuleType | Any:
    """Return a library, or what stands for it where it is missing."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return Missing(name)


def find_name(value: object) -> str:
    """Return the name of the library that a value or a class comes from, or that a text is."""
    if isinstance(value, str):
        return value
    if isinstance(value, type | Missing) or inspect.isroutine(value):
        return str(value.__module__).partition(".")[0]
    return type(value).__module__.partition(".")[0]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test with the libraries of its case."""
    case = getattr(item, "callspec", None)
    for name in {find_name(value) for value in case.params.values()} if case else ():
        if name in NAMES:
            item.add_marker(pytest.mark.needs(name))
