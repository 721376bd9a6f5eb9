"""What clients can list and read, tools and resources, and the news that a list has changed.

Face: `tool_lists` and `resources` answer lists and reads, `meta_tools` are the bridge's own tools,
`change_notices` and `resource_notices` tell the news, `open_streams` bounds who waits for them, and
`resource_owners` says who may see which resource.

Runs on the bridge's event loop. Which kernels there are is the business of `kernels`.
"""
