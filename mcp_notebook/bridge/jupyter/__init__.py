"""The bridge behind a Jupyter Server: serves the tools of that server's kernels to its user only.

Face: `server_bridge.run_server_bridge`. Runs in a process that the server's extension starts, on
its event loop. Logins are the server's business.
"""
