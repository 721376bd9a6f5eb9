"""A person's consent before a call starts, if its tool or the policy requires it.

Face: `consent.Consent` is the gate that asks, and remembers what was allowed for the session;
`policy` decides which calls need consent, `question` writes the text that the person reads. Runs on
the bridge's event loop. The client or the kernel's notebook shows the question.
"""
