"""MCP's forms of tools and results, in each of its versions and for each client.

Face: `tool_form` (also which version has which feature), `result_forms`, `accommodations`
(workarounds for specific clients). Runs on the bridge's event loop.
"""
