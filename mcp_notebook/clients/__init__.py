"""MCP clients: where each keeps its settings, and the entry that connects it to mcp-notebook.

A client starts ``mcp-notebook stdio``, or connects to the HTTP endpoint, because an entry in its
settings file says so. For each client, this room knows the file on each platform, the form of an
entry, how the client gets a token, and its peculiarities. Each fact comes from the client's
documentation or from trying it; `known_clients` cites the source.

A settings file belongs to the user, so it is edited as text: `json_text` and `toml_text` insert or
remove an entry; `settings_text` parses the result and compares it with the expected settings; and
`installation` writes the file, or nothing.

Face: `client` (the description of a client), `known_clients` (all clients, by name), `servers` (the
command or address for an entry), `rendering` (an entry to paste), `snippets` (what follows for the
user), `installation` (reading and changing the settings file), `panel_clients` (connecting a client
from a side panel), `editor_extension` (the side panel in VS Code and its relatives).

Runs in the process of the command, or on a worker thread of a Jupyter server. It neither starts a
client nor talks to one; only an editor's own command is run, to install its extension.
"""
