"""Lists of tools and resources, and notifications of their changes.

Face: `tool_lists`, `resources`, `declared_resources`, `skills` and `skill_requests` answer lists
and reads in `pages`, `meta_tools` are the bridge's own tools, with `tool_search` for one of them,
`call_progress` tells live views how far their calls are, `change_notices`, `resource_notices` and
`resource_subscriptions` notify clients of changes, and `notification_streams` limits the streams on
which clients wait for that.

Runs on the bridge's event loop. `kernels` knows which kernels exist.
"""
