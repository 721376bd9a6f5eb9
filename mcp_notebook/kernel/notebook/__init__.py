"""The author's interface in the notebook: magics, decorators, cards and the panel.

Face: `McpMagics` and `suggest_correction` (`magics`), `Notebook` (`mcp_verbs`), `MagicCompleter`
(`completion`), `CellTools` (`cell_tools`), `ConsentPrompts` (`consent_prompts`),
`declare_decorated` (`declarations`), `NotebookFile` (`notebook_file`),
`ResourceChanges` (`resource_changes`), `Inspection` (`inspection`), `ClientCells` (`client_cells`),
`Proposing` (`proposing`), `SidePanel` (`side_panel_state`), `CallNames` (`cells`),
`describe_orphans` (`tool_problems`), `ToolLock` (`tool_lock`), `public_address` and `EXTENSION`
(`loaded_extension`) for the extension;
`read_line` (`magic_line`) and `parse_cell` (`reassigned_names`) for the checks; for authors, who
import them from `mcp_notebook`, `mcp_tool` and `mcp_tools` (`decorators`), `Tool` and `registry`
(`registry`), and `SharedPath` (`shared_path`).

The path of a ``%%mcp_tool`` cell: `magic_line` parses the line, `cells` runs the cell or compiles
it to a function, `declarations` builds the tools, `cell_tools` registers them as the cell's, and
`cards` shows them when the cell has ended. `mcp_verbs` has one function for each verb of ``%mcp``;
`background_bridge` starts and stops the process behind ``%mcp serve``. `option_help` is the help of
``%%mcp_tool?`` and ``mcp_tool?``. `consent_prompts` asks whether a call may run; ``%mcp allow`` and
``%mcp deny`` answer. `proposing` lets clients propose cells, which wait in `proposals`. `panel` is
the room of the side panel, ``%mcp panel`` and ``%mcp status``, and `call_table` the table of
``%mcp log``. `tool_problems` lists what is wrong with the tools. `live_display` is an output that
any thread can update, `output_html` the HTML that outputs share. `call_cells` writes a call as a
cell, or as one line. `public_address` is the notebook's address on Binder and JupyterHub.

Threads: magics and cells run on the kernel's main thread. The decorators and `registry` work on any
thread, also inside a tool. Without a notebook, the decorators only mark the function.

Errors: a mistake on a magic's line is a `UsageError`, which IPython shows as one sentence; one in a
decorator or in `registry` is a `DefinitionError`. An error in the user's own code is shown as in
any cell, without the frames of this room.

Left to others: `tools` defines what a tool and its options are, and holds the notebook's tools;
`calls` runs ``%mcp call``.
"""
