"""Calls in a copy of the whole kernel, made by a fork.

`fork_runner` runs each call in a `forked_child`, which is forked without the handlers of C
libraries (`raw_fork`), unless a loaded library would not survive that (`fork_safety`). The copy
first detaches from the kernel's sockets, pipes and files. It is killed if it deadlocks on a thread
that only the kernel has (`endless_wait`).

Face: `fork_runner.ForkRunner`. Runs on the thread of the call, and in the copy.
"""
