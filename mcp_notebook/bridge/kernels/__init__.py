"""The links to kernels, and all their tools in one catalogue.

Face: `Links` (opens, keeps and closes links; finds the one for a call), `Link` and `RunningCall`
(one kernel, one call), `Listener` (takes progress and log messages), `Catalog` and `CatalogEntry`
(the tools and the names that clients see).

Threads: everything runs on the bridge's event loop.

Speaks the protocol of `wire`, and knows nothing of MCP. Which kernels are live comes from
`discovery`, or from `headless` for those that the bridge itself started.
"""
