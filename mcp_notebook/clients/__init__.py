"""The programs that people talk to assistants in, and what each must be told to find this one.

A client starts ``mcp-notebook stdio``, or connects to the HTTP endpoint, because its settings file
says so. This room knows the clients: where each keeps that file on each platform, what an entry in
it looks like, how it can be given a token, and what it needs that others do not. Each fact is from
the client's documentation or from having tried it; `known_clients` says which.

Face: `client` (what is known of one), `known_clients` (all of them, by name), `servers` (the
command or address that a client gets), `snippets` (what to copy into which file, and the link that
opens a client with it).

Runs in the process of the command, and in kernels for ``%mcp config``, on the main thread. It loads
nothing but the standard library there. It neither starts a client nor talks to one.
"""
