"""MCP's forms of requests, tools and results, in each of its versions.

Face: `client_request`, `client_profile`, `client_sessions`, `protocol_error`, `result_forms`,
`tool_form`, `accommodations` (what each client can take), `versions`, `detached_arguments` and
`json_spans` (of a large request), `base64_text` (of a large answer). Runs on the bridge's event
loop. `postponed_sdk` and `sdk_import` are imported before anything else of the SDK.

A bridge over stdio starts without the SDK. So modules here and in the rooms above import nothing of
`mcp` at their top, and use the names of `mcp_types`, which load it, only when there is no way
around; annotations are not evaluated.
"""
