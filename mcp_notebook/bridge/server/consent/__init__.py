"""A person's consent before a call starts, where its tool or the policy wants that.

Face: `consent.Consent` is the gate that asks, and remembers what was allowed for the session;
`policy` says which calls need it, `question` writes what the person reads. Runs on the bridge's
event loop. The client shows the question, or the kernel's notebook.
"""
