"""What a notebook shows of its tools: a card below the cell that declares them, and a table.

Face: `ToolCards` (`tool_cards`) shows the cards and keeps them true; `tool_view` builds the list of
``%mcp list``, and `tool_state` says why clients miss tools.

`tool_facts` gathers what a card says of a tool, and `tool_view` writes it as HTML and as plain
text. `tool_state` finds what has become of a tool: is it live, gone, renamed, or declared again
elsewhere, and under which name do clients see it? These are pure.

What a card shows is stored with the notebook, and looked at after a restart, on GitHub and in
editors without scripts. So a card says when and in which kernel it was made, folds without
scripts, and has no styles but those on its elements. Scripts only add buttons; whatever a name or a
docstring holds is text in the HTML and in no script.

Threads: cards are shown on the thread of their cell, and updated on the thread that has changed the
tools, also while a cell runs: an update goes to the frontend as a message of its own. Calls change
no card.

Left to others: which cell declares what (`cell_tools`), when to look again (`kernel.extension`),
and the names that clients see, which bridges send (`kernel.link`).
"""
