"""The kernel's end of the link: where bridges connect, ask and are answered.

The room listens on a socket, speaks the protocol of `mcp_notebook.wire`, and passes calls on. It
runs no user code on its thread and knows of a tool only its `ToolInfo`.

Face: `Endpoint` and `Address` (`endpoint`), `ResourceReader` (`resource_reader`), `ResourceStore`
(`resource_store`), `PublishedRecord` (`published_record`), `ShutdownHook` (`shutdown_hook`); only
the extension builds them. `Endpoint` accepts connections; `Conversation` talks to one bridge;
`call_notices` sends the progress, log messages and questions of a call; `ToolChanges` sends changed
tools to all bridges; `Watchers` sends the notebook's state to side panels. `FrameSender` writes to
the bridge's socket. `ResourceStore` keeps the originals that results show only in part;
`ResourceReader` reads them for clients. `ShutdownHook` notifies bridges of a shutdown. `own_log`
keeps what all of the kernel's side logs out of the user's cells.

Threads: one daemon thread with its own event loop owns the endpoint and its conversations. Other
threads pass progress, log messages and questions to it with ``call_soon_threadsafe``. The thread
that has a result sends it, unless something else has to be sent first. Creating the content of a
resource may take long and may run code of the user's objects, so it happens on a few worker
threads. The store may be used from any thread.

Left to others: `tasks` answers requests about tasks; `calls` runs and stops calls, and reports
their progress; `results` creates the originals; `bridge.kernels` is the other end of the link.
"""
