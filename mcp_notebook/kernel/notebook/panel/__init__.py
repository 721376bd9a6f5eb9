"""The notebook's state: beside the notebook, in ``%mcp panel`` and in ``%mcp status``.

Face: `SidePanel` (`side_panel_state`) is what a frontend's side panel shows and may change;
`status_card` renders the same state as an output.

`thumbnails` makes a call's result small. All but `side_panel_state` are pure.

Threads: none of its own. The endpoint's thread reads the state for side panels, the main thread for
the magics.

Left to others: who is told, and when (`kernel.link`), the log of calls (`kernel.calls`), and the
pages that show the side panel (``panel/``, in ``labextension/`` and ``vscode/``).
"""
