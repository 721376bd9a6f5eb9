"""What makes a call large."""

import threading

from mcp_notebook.kernel.executors.job import Job
from mcp_notebook.kernel.executors.large_calls import find_large_parts

CELL = """
import threading
frame, other, small = b"x" * 5_000_000, b"y" * 9_000_000, 1

def helper():
    return other

def use(rows, lock=None):
    return frame, helper(), small
"""


def make_function():
    variables = {"__name__": "__main__"}
    exec(CELL, variables)
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
