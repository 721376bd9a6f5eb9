"""Starts ipykernel for a headless notebook, with the extension's modules loaded in advance.

The program of such a kernel, on its main thread. It takes the place of ``ipykernel_launcher``, and
is run by its path, so that nothing in the notebook's folder takes the place of what it imports. The
bridge still loads its own libraries when a kernel could already run cells, so the time is free.
"""

import sys
from contextlib import suppress
from pathlib import Path

from mcp_notebook.lean_imports import leave_out


def main() -> None:
    """Run a kernel, with the arguments of ipykernel, until it is shut down."""
    if sys.path[:1] == [str(Path(__file__).parent)]:
        del sys.path[0]  # Python adds it, unless it is told not to; cells must not import from it
    from ipykernel.kernelapp import IPKernelApp  # noqa: PLC0415 - not from that folder

    with suppress(Exception):  # the cell with `%load_ext` meets it again, and shows it
        import mcp_notebook.kernel.extension  # noqa: F401, PLC0415
    app = IPKernelApp.instance()
    # A quarter of what a kernel needs to start, in time and memory, is Jupyter's debugger, to which
    # nobody can connect here. Cells can import it afterwards.
    with leave_out("debugpy"):
        app.initialize()
    app.start()


if __name__ == "__main__":
    main()
