"""Calls that run elsewhere: what an executor gets in place of a tool's function, and who waits.

`executor_call` submits a `job.Job`, a function with its arguments, waits for it, and limits its
time. An executor gets nothing else: no keyword of its ``submit`` can be taken for an argument.
`engines` knows what differs from one executor to another, `dask_engine` how a Dask client is used.
Where the executor pickles the job, the function goes by value if it is from a cell, and nothing of
ours goes along (`pickling`). `remote_run` then runs it on the worker, which need not have this
package: what it prints and displays (`remote_outputs`) comes back with its value, what its
``Context`` reports (`remote_context`) comes at once where there is a way back. In a pool of
threads, the function runs in the context of its call.

Face: `executor_call`, whose `run_in_executor` runs a call and `EngineFinder` finds its engine, and
`dask_engine`, whose `find_client` knows a Dask client.

Threads: a job is made, and waited for, on the thread of its call, pickled on any thread, and run by
the executor's worker.

Left to others: `calls.execution` has the call that waits, `fork` runs one in a copy of the kernel.
"""
