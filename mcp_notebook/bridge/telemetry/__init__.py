"""The audit log.

Face:

- `call_events`: `CallStart`, `CallEnd`, `CallRefusal` and `ViewRead`.
- `audit_log`: takes the events and writes the log. `audit_records` makes the lines of each call;
  `audit_file` writes and reads the files. The command that shows the log uses both.

Threads: everything runs on the bridge's event loop, except writing the audit log (`audit_log`,
`audit_file`), which has a thread of its own because a disk may hang.

`server` reports the events of each call. `access` identifies callers and decides what they may do.
"""
