"""Who may come in, and what they may do.

Face:

- `gate`: `Gate`, in front of the HTTP endpoint; `Authenticator`, which it asks; `is_loopback`.
- `refusals.RefusalLog`: the lines about what was refused.
- `tokens`: `list_authenticators`, which tell whose a bearer token is; `OwnToken`.
- `own_token_file`: `read_token`, `renew_token`: the endpoint's own token.
- `token_store`: the file of the tokens that others have.
- `caller`: `Caller` and `Permissions`: who makes a request, and what that caller may call.
- `permitted_tools.PermittedTools`: the catalogue as one caller sees it.
- `rate_limits.RateLimits` and `shares.Shares`: how often and how much at a time a caller may.

Threads: everything runs on the bridge's event loop; tokens are read before it starts.

A transport finds out who the caller is; `calls` and `lists` ask here what that caller may do. A
tool that a caller may not call does not exist for it: it is neither listed nor suggested. What is
written down about calls is the business of `telemetry`.
"""
