"""``mcp-notebook connect``: stdio in, a remote MCP server over Streamable HTTP out.

Face: `command` (`connect`), and `addresses` (`read_address`) for
`install`, which checks an address before it writes it.

Threads: everything runs on the event loop of the command's process, except two threads that read
stdin and write stdout (`client_lines`).

For clients that can start a command but cannot send a token. `addresses` parses the address that
the user gave, `credentials` finds the token, and `find_endpoint` finds the path of MCP. `starter`
starts what does not run: a user's server on a JupyterHub (`hub_server`), a repository on a
BinderHub (`binder`), a notebook (`remote_notebook`). `relay` then forwards messages both ways as
unchanged bytes. It reads only what HTTP needs: ids, methods, the protocol version. After a lost
connection or a restart of the server, it reopens the `session` of clients that use ``initialize``,
and subscriptions (2026-07-28). `remote` and `failures` are the door to httpx2 in this room. Only
the client and the remote server interpret the messages.
"""
