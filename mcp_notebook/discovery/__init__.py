"""How processes find the live kernels of their user: by files that the kernels publish.

Face: `records` writes, reads and watches these files; `departures` remembers for ten minutes which
kernels have left, and `record_ids` makes the records' ids. `greeting` connects to the kernel that a
record names. `own_requirement` finds the package itself for other environments. Used by
kernels, bridges and the server extension.
"""
