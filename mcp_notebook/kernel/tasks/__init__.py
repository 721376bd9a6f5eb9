"""Calls that outlive the bridge that started them: tasks.

A call becomes a task when a bridge requests it. The client then polls instead of waiting: through
the same bridge or another, it finds the call by the task's id until some time after the call's end,
as long as the kernel lives.

Face: `task.Task`, one such call with its state, open questions and result; `task_store.TaskStore`,
which holds all tasks and drops them after a while; `task_calls`, the tasks of one bridge and its
requests about tasks.

Threads: everything belongs to the endpoint's thread. Ordinary calls do not pass through this room.

Left to others: `calls` runs and stops the call; `link` passes on its progress, questions and
result.
"""
