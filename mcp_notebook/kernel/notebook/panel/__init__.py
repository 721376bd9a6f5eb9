"""The live panel of ``%mcp panel``: clients, tools and calls, shown anew by itself.

Face: `LivePanel` (`live_panel`) shows and follows, `PanelSource` (`panel_source`) reads what there
is to show.

`panel_source` reads the notebook's parts and makes a `panel_state.PanelState` of them, in which all
is text, with what each call returned in small; `panel_view` turns that into HTML and plain text,
with a button for each open call. `live_panel` waits for changes and publishes them, some times a
second at most. The other modules are pure.

Threads: one daemon thread, which is started with the first panel. Changes are noted on any thread,
and cost next to nothing there.

Left to others: how an output reaches frontends (`live_display`), what a call is and who logs it
(`kernel.calls`), and stopping a call: the button asks the server extension for it.
"""
