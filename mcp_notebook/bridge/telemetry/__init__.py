"""What is written down about calls, and what is measured.

Face:

- `call_events`: `CallStart`, `CallEnd`, `CallRefusal`, and `CallObserver`, which takes them.
- `call_tracer.CallTracer`: the span of each call.
- `metrics.Metrics`: the numbers of a bridge; `prometheus_page` shows them.
- `audit_log`: takes what happens to calls and writes it. `audit_records` makes a line of it,
  `audit_file` is the file that the lines are in, and `call_journal` keeps the calls that run. The
  command that shows the log uses the last three.

Threads: everything runs on the bridge's event loop, but for the writing of the audit log
(`audit_log`, `audit_file`, `call_journal`), which has a thread of its own: a disk may hang.

`server` reports what happens to each call; the observers here keep it. Who a caller is and what it
may do is the business of `access`.
"""
