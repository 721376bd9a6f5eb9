"""Notebooks without a frontend: their cells run in a kernel of the bridge, which is kept alive.

Face:

- `notebook.run_notebook`: runs a notebook once, for a command.
- `supervisor.Supervisor`: runs a notebook and restarts its kernel, for a bridge.
- `cell_progress`: `SharedProgress` and `show_on_stderr`, the progress of the cells.

Threads: everything runs on the bridge's event loop; kernels are child processes.

The door to jupyter_client, nbclient and nbformat, whose errors become `NotebookError`. The tools of
such a notebook are reached like those of any other, through the record that its kernel publishes
and a link of `kernels`.
"""

import sys

if "rfc3987_syntax" not in sys.modules:
    # nbformat imports jsonschema, and that imports this where Jupyter Server has brought it: two
    # seconds of CPU to make a parser of IRIs from a grammar, and no notebook has any.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # as if it were not installed
    try:
        import jsonschema  # noqa: F401 - now, without it
    finally:
        del sys.modules["rfc3987_syntax"]
