"""``mcp-notebook doctor``: tries what connects clients and notebooks, and says what is wrong.

Face: `examination` (`Examination`, `examine`).

Runs in a short-lived process, on its event loop; it changes nothing. `written_servers` reads what
clients' settings say about this program. `written_commands` starts the command as its client
would, `written_addresses` asks an address as its client would, and both through `mcp_clients`, the
door to the MCP SDK and to httpx2 here. `open_notebooks` asks kernels what they offer, `machine`
looks at what all clients share. Each says what it finds as `findings`.

Whatever is found has its cause and the next step. Where clients keep their settings, and what
an entry should be, is the business of `clients`.
"""
