"""The links to kernels, and all their tools in one catalogue.

Face:

- `links.Links`: opens, keeps and closes links, and finds the link for a call.
- `link.Link`: the link to one kernel.
- `kernel_requests`: `KernelRequests` (`Link.requests`) requests resources, tasks and consent from
  the kernel; `KernelTask` is a task in the kernel.
- `running_call`: `RunningCall`, one call; `Listener`, which receives its progress and log messages.
- `served_uris`: the URIs under which clients find resources.
- `locked_tools`: with `--locked`, what of a notebook's tools clients get.
- `catalog`: `Catalog` and `CatalogEntry`, the tools and the names that clients see.

Threads: everything runs on the bridge's event loop.

Speaks the protocol of `wire`, and knows nothing of MCP. `discovery` finds live kernels, and
`headless` names those that the bridge itself started.
"""
