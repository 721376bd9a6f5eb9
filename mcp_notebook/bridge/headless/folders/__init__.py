"""Folders of notebooks: all of them are listed, and a kernel starts when a call needs it.

Face:

- `folder.NotebookFolders`: serves folders for a bridge, or lists what they offer for a command.

Threads: everything runs on the bridge's event loop; files are read in worker threads.

`files` finds the notebooks, and `names` names them; `notebook_code` reads them, and `offers` knows
what they last offered. `served_notebook` starts and ends the kernel of one.
"""
