"""Lists of tools and prompts, and notifications that lists have changed.

Face: `tool_lists` answers requests for lists in `pages`; `change_notices` notifies clients, and
`notification_streams` limits the streams on which they wait for that.

Runs on the bridge's event loop. `kernels` knows which kernels exist.
"""
