"""The panels: clients, tools and calls, in an output (``%mcp panel``) and beside the notebook.

Face: `LivePanel` (`live_panel`) shows and updates the panel, `PanelSource` (`panel_source`) reads
its contents; `SidePanel` (`side_panel_state`) is what a frontend's side panel shows and may change.

`panel_source` reads the notebook's state into a `panel_state.PanelState`: texts, and a thumbnail of
each result. `panel_view` renders the state as HTML and plain text, with a stop button for each open
call. `live_panel` waits for changes and publishes them, at most a few times a second. The other
modules are pure.

Threads: one daemon thread, started with the first panel. Changes are noted on any thread, at next
to no cost.

Left to others: how an output reaches frontends (`live_display`), the log of calls (`kernel.calls`),
and stopping a call: the button asks the server extension.
"""
