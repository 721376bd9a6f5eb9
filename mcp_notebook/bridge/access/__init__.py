"""Who may come in, and what they may do.

Face:

- `gate`: `Gate`, in front of the HTTP endpoint; `is_loopback`.
- `refusals.RefusalLog`: the lines about what was refused.
- `authentication.list_authenticators`: what tells callers by their tokens.
- `authenticator`: `Authenticator`, which tells whose a bearer token is; `OwnToken`.
- `named_tokens.NamedTokens`, and `token_store`: the tokens of others, and their file.
- `token_file`: `read_token`, `renew_token`.
- `caller`: `Caller` and `Permissions`: who makes a request, and what that caller may call.
- `permitted_tools.PermittedTools`: the catalogue as one caller sees it.
- `rate_limits.RateLimits` and `shares.Shares`: how often and how much at a time a caller may.
- `consent_policy`: `ConsentPolicy`, which calls a person has to agree to; the errors without that.
- `consent_question.write_question`: what that person reads.
- `consent_grants.ConsentGrants`: what was allowed "for this session".

Threads: everything runs on the bridge's event loop; tokens are read before it starts.

A transport finds out who the caller is, and `server` asks here what the caller may do. What a
caller may not call does not exist for it: it is neither listed nor suggested. What is written down
about calls is the business of `telemetry`.
"""
