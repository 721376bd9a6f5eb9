"""The bridge behind a Jupyter Server: the tools of that server's kernels, for its user alone.

Face: `server_bridge.run_server_bridge`. Runs in a process that the server's extension starts, on
its event loop. Logins are the server's business.
"""
