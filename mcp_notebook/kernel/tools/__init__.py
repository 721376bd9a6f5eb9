"""What a tool or a prompt is: a function with options, schemas and metadata; and their registry.

A declaration from a cell, a decorator or data becomes a `DeclaredTool`; the registry holds the
tools of the notebook, follows the variables that they were declared from, and knows why a tool was
dropped. `Context` and its elicitations, which a function can use during a call, are here as well.

Face, for `kernel.calls`, `kernel.notebook`, `kernel.link` and `kernel.extension`:

- `declared_tool`: `make_tool`, `DeclaredTool`, and the mark of ``@mcp_tool``
- `attribute_tools`: tools that are methods or attributes of an object
- `tool_registry`: `ToolRegistry`
- `options`: `ToolOptions`, `ToolKeywords`; `option_table`: the same for pages and help
- `tool_words`: whether a model is told enough of a tool
- `metadata`: what clients get besides schemas; `icons`: `Icon`
- `resource_templates`: the URIs of resources
- `skills`: skills, which are resources with fixed texts
- `completion`: completes arguments for clients
- `own_views`: `OwnViews`, the authors' own pages of live views
- `context`: `Context`, `Client`, log levels; `reporting`: its part for workers
- `open_questions`: questions of a call to its client's user, and their answers

Threads: tools are declared on the thread of the cell or tool that declares them; the registry is
safe on any thread and calls its subscriber on the thread of the change. A `Context` is used on the
thread of its call; answers to elicitations arrive on the link's thread.

Left to other rooms: how options are written in a notebook (`kernel.notebook`), how a tool is called
(`kernel.calls`), and how clients are notified of it (`kernel.link`).
"""
