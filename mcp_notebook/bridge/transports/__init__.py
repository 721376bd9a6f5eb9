"""How clients reach the server: stdio and Streamable HTTP.

Face: `stdio` (`serve_stdio`), `http` (`open_listener`, `format_url`, `serve_http`),
`connections` (`Connections`), `endpoint` (one per catalogue), `known_ports`, `port_owner` and
`encryption` (`check_encryption`, `describe_reach`).

Threads: everything runs on the bridge's event loop. Only stdio on a terminal or a file uses
threads (`blocking_descriptors`), because an event loop cannot wait for these.

Only this room uses uvicorn. `connections` and `http_connection` limit what anyone may send.
Requests pass the gate (`access.gate`: Host, Origin, token) before anything else reads them, except
for ``/healthz`` (`http`). `endpoint` and `stdio` read messages, and keep their clients'
sessions. `server` interprets requests, and `bridge.app` decides when to stop.
"""
