"""How clients reach the server: stdio and Streamable HTTP.

Face: `stdio` (`serve_stdio`), `http` (`open_listener`, `format_url`, `serve_http`),
`endpoint`, of which a bridge with several catalogues has one for each, `known_ports`,
`port_owner` and `encryption` (`check_encryption`, `describe_reach`).

Threads: everything runs on the bridge's event loop. Only stdio from a terminal or a file uses the
SDK's threads, because an event loop cannot wait for those.

The door to Starlette and uvicorn, and with `server` to the MCP SDK. `connections` and
`http_connection` bound what anyone may send. Requests pass the gate (`access.gate`: Host, Origin,
token) before anything else reads them, except for ``/healthz`` (`health_and_metrics`). Plain
requests are answered here (`fast_path`), without the SDK. Its own answers pass through
`json_responses`, and large calls reach it without their arguments (`large_requests`). What requests
mean is the business of `server`; when to stop, that of `bridge.app`.
"""
