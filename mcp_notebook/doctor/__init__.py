"""``mcp-notebook doctor``: tests what connects clients and notebooks, and explains what is wrong.

Face: `examination` (`Examination`, `examine`).

Runs in a short-lived process, on its event loop; it changes nothing. `configured_servers` reads the
entries for mcp-notebook in clients' settings. `command_check` starts the command of an entry as its
client would, and `address_check` connects to the address of one. Both use `probes`, the door to the
MCP SDK and to httpx2 in this room. `open_notebooks` asks kernels for their tools, and `machine`
checks what all clients share. Each returns `findings`.

A finding names the cause and the next step. Where clients keep their settings, and what an entry
should be, is defined in `clients`.
"""
