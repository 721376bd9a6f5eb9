"""``%mcp record`` and ``%mcp insert``: calls become cells of a notebook file.

Face: `recording.Recording`; `notebook_file` finds the file of this kernel's notebook. Runs on the
kernel's main thread, and `call_recorder` on a thread of its own.
"""
