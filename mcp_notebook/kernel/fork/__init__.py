"""Calls in a copy of the whole kernel, made by a fork.

`fork_runner` runs each call in a `forked_child`, which is made without the handlers of C libraries
(`raw_fork`), unless a library is loaded that a copy would break (`fork_safety`). The copy first
lets go of the kernel's sockets, pipes and files, and is ended if it waits for a thread that only
the kernel has (`endless_wait`).

Face: `fork_runner.ForkRunner`. Runs on the thread of the call, and in the copy.
"""
