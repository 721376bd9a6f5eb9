"""What is written down about calls, and what is measured.

Face:

- `call_events`: `CallStart`, `CallEnd`, `CallRefusal`, and `CallObserver`, which takes them.
- `metrics.Metrics`: the numbers of a bridge; `prometheus_page` shows them.

Threads: everything runs on the bridge's event loop.

`server` reports what happens to each call; the observers here keep it. Who a caller is and what it
may do is the business of `access`.
"""
