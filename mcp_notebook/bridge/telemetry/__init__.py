"""The audit log, metrics and traces of calls.

Face:

- `call_events`: `CallStart`, `CallEnd`, `CallRefusal`, and `CallObserver`, which takes them.
- `call_tracer.CallTracer`: the span of each call.
- `metrics.Metrics`: the metrics of a bridge; `prometheus_page` shows them.
- `audit_log`: takes what happens to calls and writes it down. `audit_records` makes a line of each
  call; `audit_file` has the files that the lines are in. The command that shows the log uses both.

Threads: everything runs on the bridge's event loop, except the writing of the audit log
(`audit_log`, `audit_file`), which has a thread of its own: a disk may hang.

`server` reports what happens to each call; the observers here record it. Who a caller is and what
it may do is the business of `access`.
"""
