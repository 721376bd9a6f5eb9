"""Who may use the bridge, and which tools each caller may call.

Face:

- `gate`: `Gate`, in front of the HTTP endpoint; `Authenticator`, which it asks; `is_loopback`.
- `refusals.RefusalLog`: the log of refused requests.
- `token_check`: `list_authenticators`, which find the caller of a bearer token; `OwnToken`.
- `own_token_file`: `read_token`, `renew_token`: the endpoint's own token.
- `token_store`: the file of named tokens.
- `caller`: `Caller` and `Permissions`: who makes a request, and what that caller may call.
- `permitted_tools.PermittedTools`: the catalogue as one caller sees it.
- `caller_limits`: `RateLimits` and `Shares`: how often, and how many at a time.

Threads: everything runs on the bridge's event loop; tokens are read before it starts.

A transport finds out who the caller is; `calls` and `listing` ask here what that caller may do. A
tool that a caller may not call does not exist for that caller: it is neither listed nor suggested.
`telemetry` writes the audit log.
"""
