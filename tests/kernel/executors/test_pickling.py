"""What is sent of a function, and what cannot be."""

import threading
from types import FunctionType

import pytest

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.executors.pickling import list_variables, pickle_call

CELL = """
import math, threading
SCALE = 2
LOCK = threading.Lock()

def helper():
    return LOCK

def outer():
    return helper(), SCALE, math

def alone(x):
    return x
"""


@pytest.fixture
def cell():
    """Return the variables of a cell."""
    variables = {"__name__": "__main__"}
    exec(CELL, variables)
    return variables


def test_the_variable_that_cannot_be_pickled_is_named_also_in_a_helper(cell):
    with pytest.raises(ToolError) as caught:
        pickle_call("outer", cell["outer"], {}, [])
    assert str(caught.value).startswith(
        "The function of 'outer' cannot be sent to its executor: the variable 'LOCK', of type "
        "lock, cannot be pickled (TypeError: cannot pickle '_thread.lock' object). "
    )


def test_the_argument_that_cannot_be_pickled_is_named(cell):
    with pytest.raises(ToolError, match="the argument 'x', of type lock, cannot be pickled"):
        pickle_call("alone", cell["alone"], {"x": threading.Lock()}, [])


def test_what_has_no_name_is_told_with_its_reason(cell):
    lock = threading.Lock()
    nested = FunctionType((lambda: lambda: LOCK).__code__, {**cell, "LOCK": lock})  # noqa: F821
    with pytest.raises(ToolError, match="something that it uses cannot be pickled"):
        pickle_call("nested", nested, {}, [])


def test_the_variables_of_a_function_are_those_of_the_notebook(cell):
    assert list_variables(cell["outer"]).keys() == {"helper", "LOCK", "SCALE"}
    assert list_variables(pickle_call) == {}
    assert list_variables(len) == {}
