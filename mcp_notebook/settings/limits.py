"""What clients may ask of a bridge and of a kernel at most: the limits among the settings.

Runs in every process; pure. Each limit is kept where what it limits is done. The limits of results
are in `settings`, which has these, too.
"""

from dataclasses import dataclass, field

from mcp_notebook.settings.values import describe_variable


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits. `make_reference.py` turns the strings below the fields into documentation."""

    max_caller_requests_per_minute: int = field(
        default=120_000,
        metadata=describe_variable("MCP_NOTEBOOK_MAX_CALLER_REQUESTS_PER_MINUTE", least=1),
    )
    """Requests of any kind that one caller may make a minute. A caller is who has a token, or who
    started `mcp-notebook stdio`. What it has not used for a minute, it may use at once."""
    max_requests_per_minute: int = field(
        default=240_000,
        metadata=describe_variable("MCP_NOTEBOOK_MAX_REQUESTS_PER_MINUTE", least=1),
    )
    """Requests a minute of all callers together."""
    max_caller_calls_per_minute: int = field(
        default=60_000,
        metadata=describe_variable("MCP_NOTEBOOK_MAX_CALLER_CALLS_PER_MINUTE", least=1),
    )
    """Calls of tools that one caller may make a minute. What it has not used for a minute, it may
    use at once."""
    max_calls_per_minute: int = field(
        default=120_000, metadata=describe_variable("MCP_NOTEBOOK_MAX_CALLS_PER_MINUTE", least=1)
    )
    """Calls a minute of all callers together."""
    max_caller_calls: int = field(
        default=512, metadata=describe_variable("MCP_NOTEBOOK_MAX_CALLER_CALLS", least=1)
    )
    """Calls of one caller that may run or wait at a time."""
    max_calls: int = field(
        default=1_024, metadata=describe_variable("MCP_NOTEBOOK_MAX_CALLS", least=1)
    )
    """Calls that one server runs at a time, for all callers and kernels together."""
    max_waiting_calls: int = field(
        default=64, metadata=describe_variable("MCP_NOTEBOOK_MAX_WAITING_CALLS", least=1)
    )
    """Number of calls, tasks included, that may run or wait in one kernel. One caller, except you,
    may have half of them, and all others together three quarters. Further calls fail with
    "busy"."""
    max_request_bytes: int = field(
        default=64 * 2**20,
        metadata=describe_variable("MCP_NOTEBOOK_MAX_REQUEST_BYTES", least=2**16, most=2**30),
    )
    """Bytes of one request. By default, pictures and tables fit among the arguments of a call."""
    max_argument_depth: int = field(
        default=100,
        metadata=describe_variable("MCP_NOTEBOOK_MAX_ARGUMENT_DEPTH", least=1, most=200),
    )
    """Levels of arrays and objects among the arguments of a call."""
    max_argument_values: int = field(
        default=1_000_000, metadata=describe_variable("MCP_NOTEBOOK_MAX_ARGUMENT_VALUES", least=1)
    )
    """Values and names of fields among the arguments of a call, at all levels."""
    max_caller_streams: int = field(
        default=256, metadata=describe_variable("MCP_NOTEBOOK_MAX_CALLER_STREAMS", least=1)
    )
    """Open streams of one caller, on which clients wait for news of tools and resources."""
    max_streams: int = field(
        default=512, metadata=describe_variable("MCP_NOTEBOOK_MAX_STREAMS", least=1)
    )
    """Open streams of all callers together. Over HTTP, each takes a connection, and many systems
    allow a process no more than 1,024 files and connections."""
    max_caller_sessions: int = field(
        default=100, metadata=describe_variable("MCP_NOTEBOOK_MAX_CALLER_SESSIONS", least=1)
    )
    """HTTP sessions of one caller, except you. A new one takes the place of the one that has been
    unused for longest, and only if all are in use is the client refused."""
    max_sessions: int = field(
        default=10_000, metadata=describe_variable("MCP_NOTEBOOK_MAX_SESSIONS", least=1)
    )
    """HTTP sessions of all callers together. Each takes about 40 KB of memory, whatever its client
    has sent."""
    session_idle_minutes: float = field(
        default=60.0,
        metadata=describe_variable("MCP_NOTEBOOK_SESSION_IDLE_MINUTES", least=0.01, most=525_600),
    )
    """Minutes after which the HTTP session of a client expires if the client sends nothing, has no
    stream open and no call running. The client then opens a new one."""


DEFAULT_LIMITS = Limits()
"""The limits where nothing is set."""
