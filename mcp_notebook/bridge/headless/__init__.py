"""Notebooks without a frontend: their cells run in a kernel of the bridge, which is kept alive.

Face:

- `notebook.run_notebook`: runs a notebook once, for a command.
- `early_kernel.launch_early`: starts a notebook's kernel while the bridge loads.
- `supervisor.Supervisor`: runs a notebook and restarts its kernel, for a bridge.
- `replica_set.ReplicaSet`: the same with several kernels of one notebook, which are replaced when
  it is saved.
- `bundle.write_bundle`: packs a notebook with its packages.
- `notebook_reader.read_notebook`: reads a notebook's file.
- `offers.find_offer`: the tools that a notebook's code offered when it last ran.
- `package_notebook.write_package_notebooks`: notebooks that stand for installed packages.
- `repeated_starts.warn_of_repeated_starts`: warns if a notebook is run for each call.
- `cell_progress`: `SharedProgress` and `show_on_stderr`, the progress of the cells.

Threads: everything runs on the bridge's event loop; kernels are child processes.

The door to jupyter_client, nbclient and nbformat, whose errors become `NotebookError`. The tools of
such a notebook are reached like those of any other, through the record that its kernel publishes
and a link of `kernels`.
"""
