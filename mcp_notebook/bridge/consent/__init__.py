"""Consent: a person is asked before a call starts, where its tool or the policy wants that.

Face: `consent.Consent` asks, `policy` says which calls need it, `question` writes what the person
reads, `grants` remembers what was allowed for the session. Runs on the bridge's event loop. How the
client or the notebook puts the question is the business of `questions` and `kernels`.
"""
