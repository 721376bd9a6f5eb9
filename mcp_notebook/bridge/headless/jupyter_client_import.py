"""Imports jupyter_client without IPython, which it only asks for the path of a folder.

Imported before jupyter_client, in the process of a bridge: IPython would add two fifths to the CPU
time before the kernel's process starts, and 5 MB.
"""

import re
from importlib.metadata import version

from mcp_notebook.lean_imports import postpone_names

_FIRST_IPYTHON = (9, 16)
"""Before it, modules of IPython cannot be imported unless the package has been."""


def _read_ipython_version() -> tuple[int, ...]:
    numbers = re.match(r"(\d+)\.(\d+)", version("ipython"))
    return () if numbers is None else tuple(map(int, numbers.groups()))


if _read_ipython_version() >= _FIRST_IPYTHON:
    for package in ("IPython", "ipykernel"):
        postpone_names(package)
