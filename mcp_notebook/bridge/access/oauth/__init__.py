"""The HTTP endpoint as an OAuth 2.1 resource server, for teams.

Face: `resource_server` (`activate_oauth`).

Threads: everything runs on the bridge's event loop; signatures are checked and keys are fetched in
worker threads.

OAuth is off unless a file turns it on (`configuration`). Users log in at an issuer
(`signed_token_verifier`) or at a JupyterHub (`hub_token_verifier`), never here: this room issues
nothing and stores nothing. `access` checks the endpoint's own tokens.
"""
