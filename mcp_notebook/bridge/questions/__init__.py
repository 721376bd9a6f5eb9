"""Questions to the person at a client, in the middle of a call or before it.

Face: `elicitation` asks, in the way of the client's era; `parked_calls` keeps a call until the
client returns with the answer, and `request_states` seals what it returns with. Runs on the
bridge's event loop.
"""
