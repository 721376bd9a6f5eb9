"""The programs that people talk to assistants in, and what each must be told to find this one.

A client starts ``mcp-notebook stdio``, or connects to the HTTP endpoint, because its settings file
says so. This room knows the clients: where each keeps that file on each platform, what an entry in
it looks like, how it can be given a token, and what it needs that others do not. Each fact is from
the client's documentation or from having tried it; `known_clients` says which.

A settings file is somebody else's. It is changed as a text: `json_text` and `toml_text` put an
entry in, or cut it out; `settings_text` then reads the result and compares it with what it should
mean, and `installation` writes it, or nothing. Settings in YAML are only read: their users paste
the lines.

Face: `client` (what is known of one), `known_clients` (all of them, by name), `servers` (the
command or address that a client gets), `snippets` (what to copy into which file, and the link that
opens a client with it), `installation` (reading and changing that file).

Runs in the process of the command, on the main thread. It neither starts a client nor talks to one.
"""
