"""The bridge's own tools, which read results, list and call notebooks' tools, and run notebooks.

Face: `meta_tools`, with `tool_search` for one of them. Runs on the bridge's event loop.
"""
