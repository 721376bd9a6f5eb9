"""The names of our own HTTP headers, for both ends of a connection. Pure constants."""

RUNS_HEADER = "Mcp-Notebook-Runs"
"""Sent by a client that runs the notebook of its address if its kernel has ended. The bridge behind
a Jupyter Server then answers as for a notebook that was never open."""
