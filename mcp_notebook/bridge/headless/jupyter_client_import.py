"""Imports jupyter_client without IPython, of which it only asks the path of a folder.

Imported before jupyter_client, in the process of a bridge: IPython would be a seventh of the
libraries' time before the kernel's process starts, and 5 MB.
"""

from mcp_notebook.lean_imports import postpone_names

for package in ("IPython", "ipykernel"):
    postpone_names(package)
