"""The links to kernels, and all their tools in one catalogue.

Face:

- `links.Links`: opens, keeps and closes links, and finds the one for a call.
- `link.Link`: the link to one kernel.
- `kernel_requests`: `KernelRequests` (`Link.requests`) asks the kernel for its resources and tasks,
  and for consent whoever sees its notebook; `KernelTask` is a task as its kernel has it.
- `running_call`: `RunningCall`, one call; `Listener`, which takes its progress and log messages.
- `stop_requests`: `list_calls` and `stop_call`, for those who have no link.
- `replicas.Replicas`: which kernels run the same notebook, and which of them gets a call.
- `catalog`: `Catalog` and `CatalogEntry`, the tools and the names that clients see.

Threads: everything runs on the bridge's event loop.

Speaks the protocol of `wire`, and knows nothing of MCP. Which kernels are live comes from
`discovery`, or from `headless` for those that the bridge itself started.
"""
