"""The bridge: the background process between MCP clients and the kernels of open notebooks.

It never imports `kernel/`, IPython or user code. A tool can neither crash it nor block it.

Face: `cli` imports `start` (``stdio`` and ``serve``) and the rooms that its other commands need;
`http_app.open_own_bridge` serves one kernel to clients of the same process, for `check`;
`shell_kernels` links kernels for commands and for `doctor`, and `absent_notebooks` says which
notebooks cannot be linked.

Threads: one event loop per process (`app` runs it with a task group per bridge). The exceptions are
calls that may block for a long time, which run in worker threads: reading the folder of records,
and encoding large resources.

Rooms, from top to bottom: `jupyter` (the bridge behind a Jupyter Server), `transports` (bytes of
clients <-> MCP messages), `connect` (a remote server for a stdio client), `server` (MCP's
requests <-> calls to kernels), `headless` (notebooks without a frontend), `access` (who may do
what), `telemetry` (audit log), `kernels` (links to kernels, and their joined
catalogue of tools). `app` builds them and stops them in order; `http_app` adds what HTTP needs, and
`asgi` has the types of its applications.
"""
