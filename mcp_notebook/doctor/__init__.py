"""``mcp-notebook doctor``: asks both ends of what connects clients and notebooks for their tools.

Face: `examination` (`examine`).

Runs in a short-lived process, on its event loop; it changes nothing. `notebook_end` asks open
notebooks, the background bridge and running Jupyter servers. `configured_servers` reads the entries
for mcp-notebook in clients' settings, and `client_end` starts the command of each as its client
would, or asks whether its address answers. Both use `probes`.

`findings` has the table of what can be wrong: each with its cause and the next step. Where clients
keep their settings, and what an entry should be, is defined in `clients`.
"""
