"""The guard around code that is not ours."""

import asyncio

import pytest

from mcp_notebook.kernel.safe.foreign_code import run_guarded


def _raise(error):
    raise error


def test_what_the_code_returns_is_returned():
    assert run_guarded(lambda: "42", str) == "42"


@pytest.mark.parametrize("kind", [ValueError, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_whatever_the_code_raises_is_recovered_from(kind):
    error = kind("no")
    assert run_guarded(lambda: _raise(error), lambda caught: caught) is error


def test_the_interrupt_that_stops_a_call_goes_on():
    with pytest.raises(KeyboardInterrupt):
        run_guarded(lambda: _raise(KeyboardInterrupt()), str)
