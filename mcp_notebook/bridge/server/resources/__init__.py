"""Resources and skills: their lists, their contents, and notifications of their changes.

Face: `resources` and `declared_resources` answer lists and reads, `skill_requests` those about
`skills`; `resource_notices` and `resource_subscriptions` notify clients of changes.

Runs on the bridge's event loop, except the encoding of large contents. The kernels have them.
"""
