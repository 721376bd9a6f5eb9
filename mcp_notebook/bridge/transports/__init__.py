"""How clients reach the server: stdio and Streamable HTTP.

Face: `stdio` (`serve_stdio`), `http` (`open_listener`, `format_url`, `serve_http`),
`endpoint`, of which a bridge with several catalogues has one for each, `known_ports`,
`port_owner` and `encryption` (`check_encryption`, `describe_reach`).

Threads: everything runs on the bridge's event loop. Only stdio from a terminal or a file uses the
SDK's threads, because an event loop cannot wait for those.

The door to Starlette and uvicorn, and with `server` to the MCP SDK. `connections` bounds what
anybody may send. Requests pass through `access.gate` (Host, Origin, token) before anything else
looks at them, except for ``/healthz`` (`health_and_metrics`). Plain requests are answered here
(`fast_path`), and the SDK never sees them. Its own answers pass through `json_responses`, and large
calls are passed on to it without their arguments (`large_requests`), which its parser never sees.
What requests mean is the business of `server`; when to stop, that of `bridge.app`.
"""
