"""The short way: plain calls and lists of tools, answered without the SDK.

Face: `plain_requests` recognizes them, `plain_answers` answers, `plain_http` and `plain_stdio` put
that in front of the SDK on each transport. All else is passed on unchanged. Runs on the bridge's
event loop.
"""
