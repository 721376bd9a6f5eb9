"""A person's consent before a call starts, if its tool or the policy requires it.

Face: `ask_consent.Consent` is the gate that asks, and remembers what was allowed for the session;
`policy` decides which calls need consent, `question_text` writes the question. Runs on the bridge's
event loop. The client, the kernel's notebook or its side panel shows the question.
"""
