"""The clients and their requests: what they declare, their sessions, their number.

Face: `client_request`, a request as all rooms read it; `client_profile`, what its client declares;
`client_sessions`; `connected_clients`, their number. Runs on the bridge's event loop.
"""
