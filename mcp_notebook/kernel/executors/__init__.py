"""Calls that run elsewhere: what an executor gets in place of a tool's function.

A `job.Job` is a function with its arguments. An executor gets nothing else: no keyword of its
``submit`` can be taken for an argument. Where the executor pickles the job, the function goes by
value if it is from a cell, without the mark of ``@mcp_tool``, whose options may hold the executor
itself; `remote_run` then runs it on the worker, which need not have this package, and brings back
what it printed. In a pool of threads, the function runs in the context of its call.

Face: `job`: `Job`, and what is known of an executor: `reports_begin`, `sends_elsewhere`.

Threads: a job is made on the thread of its call, pickled on any thread, and run by the executor's
worker.

Left to others: `calls.executor_call` submits jobs, waits for them and limits their time.
"""
