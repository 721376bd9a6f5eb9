"""Calls that outlive the bridge that started them: tasks.

A call becomes a task when a bridge says so. Its client then does not wait for it: it asks from time
to time, through the same bridge or another one, and finds the call by the task's id for as long as
the kernel lives and some time after the call's end.

Face: `task.Task`, one such call with its state, its open questions and its result;
`task_store.TaskStore`, which has them all, forgets them in time, and finds those that a client has
given up when it makes the same call again; and `task_calls`: the tasks of one bridge, and what it
asks about tasks.

Threads: all of it belongs to the endpoint's thread; only `task_store.TaskStore.list_tasks` may be
called on any. Nothing is done here for a call that is no task.

Left to others: `calls` runs and stops the call; `link` brings what it reports, asks and returns.
"""
