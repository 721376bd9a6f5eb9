"""A small MCP client, for commands that ask a server what it has and call its tools.

Face: `client.McpClient`; `http.HttpTransport` and `stdio.open_command` are ways to a server. Runs
on a command's event loop. It declares no capabilities, sends one request at a time, and ignores
notifications. `bridge.connect`, which forwards messages of other clients, does not use it.
"""
