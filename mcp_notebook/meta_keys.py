"""The keys of ``_meta`` that are ours, all under one prefix, and what each holds.

The kernel writes them into a tool's or a result's ``_meta``, the bridge reads some and passes all
on to clients. Only names; who fills and reads them is said at each.
"""

PREFIX = "io.github.mcp-notebook/"
"""Of all keys of ours, as MCP wants it: a reverse-DNS name. Authors may not use it."""

TAGS = f"{PREFIX}tags"
"""Of a tool: its author's words to group tools by, a list of strings (`kernel.metadata`)."""
PRIORITY = f"{PREFIX}priority"
"""Of a tool: a number; `bridge.catalog` lists tools of a higher one first. Absent means 0."""
RELATED = f"{PREFIX}related"
"""Of a tool: names of tools that belong to it, a list of strings (`kernel.metadata`)."""
CACHE = f"{PREFIX}cache"
"""Of a tool: whether and how long its results are given again."""
CACHED = f"{PREFIX}cached"
"""Of a result: that it is an earlier call's."""
