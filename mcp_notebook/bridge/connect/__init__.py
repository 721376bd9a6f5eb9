"""``mcp-notebook connect``: stdio in, a remote MCP server over Streamable HTTP out.

Face: `command` (`connect`), `credentials` (`TokenSource`), and `addresses` (`read_address`) for
`install`, which writes no address that leads nowhere.

Threads: everything runs on the event loop of the command's process, but for two threads that read
stdin and write stdout (`client_lines`).

For clients that can start a command but cannot send a token. `addresses` reads what the user
pasted, `credentials` finds the token, `find_endpoint` asks the address which of its paths is MCP,
or `binder` has a repository started on a BinderHub. `relay` then passes messages
on, both ways, as the bytes that they are. It looks only at what the way over HTTP needs: ids,
methods, the protocol's version. It opens again what a lost connection or a restarted server has
ended: the `session` of clients that open with ``initialize``, and subscriptions (2026-07-28).
`remote` and `failures` are the door to httpx2 here. What the messages mean is the business of the
client, and of the server on the other side.
"""
