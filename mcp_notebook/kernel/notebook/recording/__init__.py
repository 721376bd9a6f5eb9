"""``%mcp record``: calls become cells of a notebook file, or of this notebook, and are played back.

Face: `recording.Recording`; `call_cells` writes a call as a cell, or as one line;
`call_recorder.make_cell` writes a logged call as a cell; `replay` reads a recording and shows it.
Runs on the kernel's main thread, and `call_recorder` on a thread of its own.
"""
