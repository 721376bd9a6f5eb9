"""A copy of the whole kernel, made by a fork, in which one call runs.

Face: `forked_child.ForkedChild`, and `fork_safety`: whether a copy could work. `raw_fork` forks
without the handlers of C libraries. Runs on the thread of the call, and in the copy.
"""
