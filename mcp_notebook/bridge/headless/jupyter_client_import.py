"""Lets jupyter_client load without IPython, which it needs only for the path of a folder.

Imported before jupyter_client, in the process of a bridge. IPython would add 40 % to the CPU time
before the kernel's process starts, and 5 MB of memory.
"""

import re
from importlib.metadata import version

from mcp_notebook.lean_imports import postpone_names

_FIRST_IPYTHON = (9, 16)
"""The first version whose submodules can be imported without importing the package."""


def _read_ipython_version() -> tuple[int, ...]:
    numbers = re.match(r"(\d+)\.(\d+)", version("ipython"))
    return () if numbers is None else tuple(map(int, numbers.groups()))


if _read_ipython_version() >= _FIRST_IPYTHON:
    for package in ("IPython", "ipykernel"):
        postpone_names(package)
