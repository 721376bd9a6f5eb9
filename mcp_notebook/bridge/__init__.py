"""The bridge: the background process between MCP clients and the kernels of open notebooks.

It never imports `kernel/`, IPython or user code. A tool can neither crash it nor block it.

Face: `cli_bridges` imports `start` (``stdio`` and ``serve``), and the other commands of `cli`
`commands` (``list`` and ``call``), `audit_command` (``audit``), `cache_commands` (``cache``),
`replay_command` (``replay``), `server_bridge` (for a Jupyter Server), `stop_command` (``stop``) and
`token_commands` (``token``), each only when its command runs. `doctor` links kernels with
`shell_kernels`.

Threads: one event loop per process (`app` runs it with a task group per bridge). The exceptions are
calls that may block for long, which run in worker threads: reading the folder of records, and
encoding large resources.

Rooms, from top to bottom: `transports` (bytes of clients <-> MCP messages), `server` (MCP requests
<-> calls), `headless` (notebooks without a frontend), `kernels` (links to kernels, and their joined
catalogue of tools). `app` builds them and stops them in order; `http_app` adds what HTTP needs.
"""
