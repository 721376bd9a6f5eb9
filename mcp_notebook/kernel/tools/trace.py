"""``Trace``: where a call belongs in a trace of several programs, as W3C Trace Context says it.

Runs in the user's kernel; pure. It needs no tracing library: whoever calls a service in a tool can
send the headers along. Spans are the business of `kernel.calls`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Trace:
    """The W3C trace context of a call; empty if its client sent none and nothing is traced.

    ::

        requests.get(url, headers=ctx.trace.headers)
    """

    traceparent: str | None = None
    """Trace and span that the call belongs to: ``00-<trace id>-<span id>-<flags>``."""
    tracestate: str | None = None
    """More about the trace, for the tracing systems that it went through."""
    baggage: str | None = None
    """Names and values that travel along. Clients choose them: they are no more trustworthy than
    the arguments of the call."""

    @classmethod
    def from_headers(cls, headers: Mapping[str, str]) -> Self:
        """Return the trace that these headers say; others are ignored."""
        return cls(headers.get("traceparent"), headers.get("tracestate"), headers.get("baggage"))

    @property
    def headers(self) -> dict[str, str]:
        """What is known, as HTTP headers for requests that the tool makes."""
        return {name: value for name, value in vars(self).items() if value is not None}


NO_TRACE = Trace()
