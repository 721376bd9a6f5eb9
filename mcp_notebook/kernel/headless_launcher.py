"""Starts ipykernel for a headless notebook, with the extension's modules loaded in advance.

The program of such a kernel, on its main thread. It takes the place of ``ipykernel_launcher``, and
is run by its path, so that nothing in the notebook's folder takes the place of what it imports. The
bridge still loads its own libraries when a kernel could already run cells, so the time is free.
"""

import sys
from contextlib import suppress

from mcp_notebook.lean_imports import leave_out


def main() -> None:
    """Run a kernel, with the arguments of ipykernel, until it is shut down."""
    if not sys.flags.safe_path:
        del sys.path[0]  # this file's folder, which Python adds; cells must not import from it
    # Jupyter's debugger takes a quarter of a kernel's time and memory at start, and cannot be
    # reached here. Startup files and cells can import it.
    with leave_out("debugpy"):
        import ipykernel.debugger  # noqa: F401, PLC0415 - not from that folder
    from ipykernel.kernelapp import IPKernelApp  # noqa: PLC0415

    with suppress(Exception):  # the cell with `%load_ext` meets it again, and shows it
        import mcp_notebook.kernel.extension  # noqa: F401, PLC0415
        from mcp_notebook.kernel.calls.shell_commands import empty_input  # noqa: PLC0415

        empty_input()
    app = IPKernelApp.instance()
    app.initialize()
    app.start()


if __name__ == "__main__":
    main()
