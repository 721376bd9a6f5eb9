"""Cards below the cells that declare tools, and the table of ``%mcp list``.

Face: `tool_view` builds both; `tool_facts.describe_in_line` describes a tool in a line.

`tool_facts` gathers the contents of a card, and `tool_view` renders them as HTML and as plain text.
Both are pure.

A card is stored with the notebook, and read after a restart, on GitHub and in editors without
scripts. So it says only what is always true of a tool: running all cells again gives the same
bytes. The state of tools and their calls are in the side panel, and in ``%mcp status``. Names and
docstrings are text in the HTML.

Left to others: which cell declares which tools (`cell_tools`), and when a card is shown
(`kernel.extension`).
"""
