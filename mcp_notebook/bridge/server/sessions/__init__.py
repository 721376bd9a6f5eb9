"""The clients and their requests: what they declare, their sessions, their number.

Face: `client_request`, a request as all rooms read it; `client_profile`, what its client declares;
`client_sessions`; `connected_clients`, their number; `protocol_error`, what a refused request
raises. Runs on the bridge's event loop. `postponed_sdk` and `sdk_import` are imported before
anything else of the SDK.

A bridge over stdio starts without the SDK. So modules here and in the rooms above do not import
`mcp` at module level, and avoid the names of `mcp_types` that load it; annotations are not
evaluated.
"""
