"""The Jupyter Server extension: routes below the address and login of the user's own server.

It is enabled wherever the package is installed beside Jupyter Server, which reads
``etc/jupyter/jupyter_server_config.d/mcp_notebook.json`` of the environment.

Face: `extension`, which Jupyter Server loads by name.

Everything runs on the server's event loop (tornado on asyncio), which also serves the user's
notebooks. Nothing here may block it. Threads come from `asyncio.to_thread`: a thread of AnyIO's
whose task has not ended when the loop stops would keep the server from ending.

This room is the one door to ``jupyter_server`` and ``tornado``. It never imports `kernel`, `bridge`
or MCP, which run in processes of their own.
"""
