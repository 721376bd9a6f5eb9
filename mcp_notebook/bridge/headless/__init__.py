"""Notebooks without a frontend: their cells run in a kernel of the bridge, which is kept alive.

Face:

- `notebook.run_notebook`: runs a notebook once, for a command.
- `early_kernel.launch_early`: starts a notebook's kernel while the bridge loads.
- `served_notebook.ServedNotebook`: serves a notebook, with a kernel from the start or on call.
- `saved_notebook.SavedNotebook`: replaces it when its file is saved.
- `bundle.write_bundle`: packs a notebook with its packages.
- `notebook_reader.read_notebook`: reads a notebook's file.
- `offers.find_offer`: the tools that a notebook's code last offered, or declares.
- `jsonschema_import`: imports jsonschema, quickly.
- `cell_progress`: `SharedProgress` and `show_on_stderr`, the progress of the cells.

Threads: everything runs on the bridge's event loop; kernels are child processes.

The door to jupyter_client, nbclient and nbformat, whose errors become `NotebookError`. The tools of
such a notebook are reached like those of any other, through the record that its kernel publishes
and a link of `kernels`.
"""
