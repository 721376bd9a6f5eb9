"""The audit log.

Face:

- `call_events`: `CallStart`, `CallEnd`, `CallRefusal`, and `CallObserver`, which receives them.
- `audit_log`: the observer that writes the audit log. `audit_records` makes the lines of each call;
  `audit_file` writes and reads the files. The command that shows the log uses both.

Threads: everything runs on the bridge's event loop, except writing the audit log (`audit_log`,
`audit_file`), which has a thread of its own because a disk may hang.

`server` reports the events of each call; the observers here record them. `access` identifies
callers and decides what they may do.
"""
