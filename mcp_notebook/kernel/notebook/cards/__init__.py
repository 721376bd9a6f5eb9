"""Cards below the cells that declare tools, and the table of ``%mcp list``.

Face: `ToolCards` (`tool_cards`) shows and updates the cards; `tool_view` builds the table of
``%mcp list``, and `tool_state` explains why clients do not see a tool.

`tool_facts` gathers the contents of a card, and `tool_view` renders them as HTML and as plain text.
`tool_state` describes the state of a tool: live, gone, renamed, or declared again elsewhere, and
the name that clients see. These are pure.

A card is stored with the notebook, and read after a restart, on GitHub and in editors without
scripts. So it says when and in which kernel it was made, folds without scripts, and has only inline
styles. Scripts only add buttons; names and docstrings are text in the HTML and never part of a
script.

Threads: cards are shown on the thread of their cell, and updated on the thread that has changed the
tools, also while a cell runs: an update is a message of its own. Calls change no card.

Left to others: which cell declares which tools (`cell_tools`), when to refresh
(`kernel.extension`), and the names that clients see, which bridges send (`kernel.link`).
"""
