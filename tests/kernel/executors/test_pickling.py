"""What is sent of a function, and what cannot be."""

import threading
from types import FunctionType

import pytest

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.executors.job import Job
from mcp_notebook.kernel.executors.pickling import find_large_parts, list_variables, pickle_call

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
    assert list(list_variables(cell["outer"])) == ["helper", "LOCK", "SCALE"]
    assert list_variables(pickle_call) == {}
    assert list_variables(len) == {}


LARGE_CELL = """
import threading
frame, other, small = b"x" * 5_000_000, b"y" * 9_000_000, 1

def helper():
    return other

def use(rows, lock=None):
    return frame, helper(), small
"""


def make_function():
    variables = {"__name__": "__main__"}
    exec(LARGE_CELL, variables)
    return variables["use"]


def test_what_is_large_is_named_the_largest_first():
    arguments = {"rows": b"z" * 4_000_000, "lock": threading.Lock()}
    parts, largest = find_large_parts(make_function(), arguments, 18_000_000)
    assert parts == (
        "the variable 'other' (9 MB) and the variable 'frame' (5 MB) and the argument 'rows' (4 MB)"
    )
    assert largest == "other"


def test_many_small_things_have_no_name():
    assert find_large_parts(len, {"a": 1}, 18_000_000) == ("many small values", None)


def test_a_job_says_what_it_carries():
    text = Job("use", make_function(), {"rows": 1}).describe_size("Write `{name}` smaller.")
    assert text.startswith("[Each call of 'use' sends 14 MB to its worker: the variable 'other'")
    assert text.endswith(" Write `other` smaller.]\n")
