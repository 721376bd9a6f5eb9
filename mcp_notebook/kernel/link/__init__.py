"""The kernel's end of the link: where bridges connect, ask and are answered.

The room listens on a socket, speaks the protocol of `mcp_notebook.wire`, and passes calls on. It
runs no user code on its thread and knows of a tool only its `ToolInfo`.

Face: `Endpoint` and `Address` (`endpoint`), `ResourceReader` (`resource_reader`), `ResourceStore`
(`resource_store`), `PublishedRecord` (`published_record`), `ShutdownHook` (`shutdown_hook`); only
the extension builds them. `Endpoint` accepts connections, `Conversation` talks to one bridge,
`call_notices` send what one call reports, logs and asks, `ToolChanges` tells bridges the tools when
they have changed, `Watchers` tells those who show the notebook to people what there is to see.
`FrameSender` writes all of it to the bridge. `ResourceStore` keeps the originals of what results
show only in part; `ResourceReader` hands them out. `ShutdownHook` lets bridges be told of a
shutdown.

Threads: one daemon thread with its own event loop owns the endpoint and its conversations. Other
threads hand progress, log messages and questions over to it with ``call_soon_threadsafe``. A result
is sent by the thread that has it, unless something has to be sent before it.
Creating the content of a resource may take long and may run code of the user's objects, so it
happens on a few worker threads. The store may be used from any thread.

Left to others: `tasks` answers what a bridge asks about tasks; `calls` runs and stops calls, and
reports on each of them; `results` creates the originals; `bridge.kernels` is the other end.
"""
