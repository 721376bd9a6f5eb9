"""Imports jupyter_client without IPython, of which it only asks the path of a folder.

Imported before jupyter_client, in the process of a bridge: IPython would be a seventh of the
libraries' time before the kernel's process starts, and 5 MB.
"""

from mcp_notebook.lean_imports import postpone_names

postpone_names("IPython", for_modules=("paths", "utils"))
postpone_names("ipykernel", for_modules=("kernelspec",))
