"""The short way: plain calls of tools and plain lists, answered without the SDK.

Face: `plain_requests` recognises them, and `plain_answers` answers them; `plain_http` and
`plain_stdio` do so on each transport, in front of the SDK. Everything else goes on to the SDK
unchanged. Runs on the bridge's event loop.
"""
