"""MCP's forms of requests, tools and results, in each of its versions.

Face: `client_request`, `client_sessions`, `result_forms`, `tool_form`, `accommodations` (what each
client can take), `versions`, `detached_arguments` and `json_spans` (of a large request),
`base64_text` (of a large answer). Runs on the bridge's event loop. `sdk_import` is imported before
anything else of the SDK.
"""
