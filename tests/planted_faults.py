"""Notebooks with planted faults, and the command that is to find them."""

import re
import subprocess

import notebook_files
from forked_command import list_words
from live import kernel_env

LOAD = "%load_ext mcp_notebook"
ADD = '''
%%mcp_tool --read-only
def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b
'''
FAULTS = {
    "changes a frame": (
        "drop_gaps",
        "changes-state",
        """
import pandas as pd
sales = pd.DataFrame({"city": ["Bern", None], "sum": [1.0, 2.0]})
""",
        '''
%%mcp_tool --read-only
def drop_gaps() -> int:
    """Count the sales that have a city."""
    sales.dropna(inplace=True)
    return len(sales)
''',
    ),
    "changes an array": (
        "scale_grid",
        "changes-state",
        "import numpy as np\ngrid = np.ones((3, 3))",
        '''
%%mcp_tool --read-only
def scale_grid() -> float:
    """Return the largest value of the grid, scaled to percent."""
    grid[:] = grid * 100
    return float(grid.max())
''',
    ),
    "writes a file": (
        "export_sales",
        "changes-state",
        '''
%%mcp_tool --read-only
def export_sales() -> str:
    """Return the path of all sales as CSV."""
    with open("sales.csv", "w") as file:
        file.write("city,sum")
    return "sales.csv"
''',
    ),
    "sets a variable of the environment": (
        "read_zone",
        "changes-state",
        "import os",
        '''
%%mcp_tool --read-only
def read_zone() -> str:
    """Return the time zone of the sales."""
    os.environ["TZ_OF_SALES"] = "UTC"
    return "UTC"
''',
    ),
    "assigns to a name": (
        "count_calls",
        "changes-state",
        "calls = 0",
        '''
%%mcp_tool --read-only
def count_calls() -> str:
    """Return the state of the shop."""
    global calls
    calls += 1
    return "open"
''',
    ),
    "differs from call to call": (
        "tell_id",
        "changing-answer",
        "import uuid",
        '''
%%mcp_tool --read-only
def tell_id() -> str:
    """Return the identifier of the shop."""
    return uuid.uuid4().hex
''',
    ),
    "answers with 30,000 characters": (
        "list_orders",
        "large-answer",
        '''
%%mcp_tool --read-only
def list_orders() -> str:
    """Return all orders of the shop as text."""
    return "order " * 5000
''',
    ),
    "hangs": (
        "wait_for_shop",
        "no-answer",
        "import threading",
        '''
%%mcp_tool --read-only
def wait_for_shop() -> str:
    """Return the state of the shop once it is open."""
    threading.Event().wait(600)
    return "open"
''',
    ),
    "ends the kernel": (
        "close_shop",
        "ends-kernel",
        "import os",
        '''
%%mcp_tool --read-only
def close_shop() -> str:
    """Return the state of the shop at night."""
    os._exit(3)
''',
    ),
    "fails": (
        "divide_sales",
        "failing-example",
        '''
%%mcp_tool --read-only
def divide_sales() -> float:
    """Return the sales of each customer."""
    return 1 / 0
''',
    ),
    "has an example that its schema refuses": (
        "pick_year",
        "example-schema",
        "from mcp_notebook import mcp_tool",
        '''
@mcp_tool(read_only=True, examples=[{"year": "2015"}])
def pick_year(year: int) -> int:
    """Return the year of the sales.

    Args:
        year: The year.
    """
    return year
''',
    ),
    "answers with something else than it declares": (
        "count_shops",
        "failing-example",
        '''
%%mcp_tool --read-only --output-schema
def count_shops() -> int:
    """Return the number of shops."""
    return "three"
''',
    ),
    "has an example that the tool refuses": (
        None,
        "failing-cell",
        "from typing import Literal",
        '''
@mcp_tool(read_only=True, examples=[{"month": 13}])
def pick_month(month: Literal[1, 2]) -> int:
    """Return the month of the sales."""
    return month
''',
    ),
}
"""Tools with a fault: the tool, the rule that finds it, and the cells."""


def write_notebook(folder, *cells):
    """Write a notebook that loads the extension and has these code cells."""
    return notebook_files.write_notebook(
        folder / "tools.ipynb", LOAD, *(cell.strip() for cell in cells)
    )


def run_check(home, *words):
    """Run the command."""
    return subprocess.run(
        list_words("check", *map(str, words)),
        env=kernel_env(home) | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
        cwd=home,
    )


def find(home, *words):
    """Run the command, and return its findings but for notes, as pairs of tool and rule."""
    done = run_check(home, *words)
    assert done.stdout, done.stderr
    return {(tool, rule) for mark, tool, rule in read_findings(done.stdout) if mark != "-"}


def read_findings(report):
    """Return the findings of a report: mark, tool (None: of the notebook) and rule."""
    lines = re.findall(r"^ *([✗!-]) (\w+)[, :](.*)", report, re.MULTILINE)
    # A traceback may follow the line of a cell that fails.
    return [
        (mark, None if tool in ("cell", "notebook") else tool, rest.rpartition("[")[2].rstrip("]"))
        for mark, tool, rest in lines
        if rest.endswith("]")
    ]
