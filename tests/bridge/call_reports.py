"""Calls as they are reported to the audit log."""

from mcp_notebook.bridge.telemetry.call_events import CallEnd, CallStart


def start_of(number=1, **changes):
    """Return the start of a call."""
    members = {
        "id": f"a1b2-{number}",
        "at": 1_700_000_000.25,
        "caller": "owner",
        "client": "claude-code 2.0",
        "kernel": "k1",
        "notebook": "sales",
        "tool": "top",
        "arguments": {"n": number, "region": "EU"},
        "input_schema": {"type": "object"},
    }
    return CallStart(**members | changes)


def end_of(start, outcome="ok", **changes):
    """Return the end of a call."""
    return CallEnd(start=start, outcome=outcome, **{"seconds": 0.25, "size": 7} | changes)
