"""Calls whose function an executor runs: process pools, thread pools, Dask, ipyparallel.

A `job.Job` is a function with its arguments. It is the only argument of ``submit``, so no argument
of the tool can be mistaken for a keyword of the executor's. `engines` holds the differences between
executors, `dask_engine` uses a Dask client, and `engine_finder` chooses. If the executor pickles
the job, a function from a cell is pickled by value, without this package (`pickling`). `remote_run`
then runs it on the worker, which need not have this package installed. Printed text and displays
(`remote_outputs`) come back with the value; progress and log messages (`remote_context`) are sent
at once if there is a channel. In a thread pool, the function runs in the context of its call.

Face: `EngineFinder` (`engine_finder`), `Engine` (`engines`), `Job` (`job`), `find_client`
(`dask_engine`).

Threads: the thread of the call creates the job and waits for it; any thread may pickle it; the
executor's worker runs it.

Left to others: `calls.executor_call` submits a job, waits for it and limits its time; `fork` runs
calls in a copy of the kernel.
"""
