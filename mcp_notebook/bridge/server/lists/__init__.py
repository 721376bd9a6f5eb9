"""Lists of tools and resources, and the news of their changes.

Face: `tool_lists` and `resources` answer lists and reads, `meta_tools` are the bridge's own tools,
`change_notices` and `resource_notices` tell the news, and `news_streams` bounds who waits for them.

Runs on the bridge's event loop. Which kernels there are is the business of `kernels`.
"""
