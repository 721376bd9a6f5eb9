"""A call whose function an executor of the author's runs: a process pool, a thread pool, Dask.

Runs in the user's kernel, on a thread of the call that waits for the executor's worker. A worker
that has begun cannot be stopped; its call is answered, and what it returns is thrown away.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import closing
from typing import Any

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.stopping import Stopper
from mcp_notebook.kernel.executors.job import Job, reports_begin, sends_elsewhere
from mcp_notebook.kernel.safe.text import describe_error

_WORKER_LOOK = 0.1
"""Seconds between two looks at whether a worker has begun."""
_BROKEN = (
    "A worker of the executor of {!r} ended: {}. The executor cannot be used any more: the user "
    "has to make a new one and declare the tool again."
)
_FAILED = (
    "The executor of {!r} did not run it: {}. If this happens again, the user has to look "
    "after the executor, or make a new one and declare the tool again."
)


def run_in_executor(
    call: ActiveCall,
    function: Callable[..., Any],
    executor: Executor,
    arguments: dict[str, Any],
    stopper: Stopper,
) -> Any:
    """Run a tool's function in an executor, and wait for what it returns.

    Args:
        call: Of the tool.
        function: The tool's, as it is called.
        executor: The tool's.
        arguments: Of its function.
        stopper: Limits the call's time: from when a worker has begun, or from now if the executor
            does not say when. Answers the call if it has to stop and the worker goes on.

    Raises:
        KeyboardInterrupt: The call has to stop.
        ToolError: The executor does not run the function.
        BaseException: What the function raised.
    """
    trace = {} if call.span is None else call.span.trace.headers
    with closing(Job(call.tool, function, arguments, trace)) as job:
        return _run_job(call, job, executor, stopper)


def _run_job(call: ActiveCall, job: Job, executor: Executor, stopper: Stopper) -> Any:
    stopped: Future[None] = Future()
    call.set_interrupt(lambda: stopped.set_result(None))
    future = _submit(call, job, executor)
    says_when = reports_begin(executor)
    call.wait_for("a free worker" if says_when else "its executor's result")
    if not says_when:
        stopper.limit_time(call)
    while not future.done() and not stopped.done() and call.stop_request is None:
        if call.state is CallState.WAITING and job.has_begun(future):
            call.resume()
            if says_when:
                stopper.limit_time(call)  # not before a worker has begun
        look = _WORKER_LOOK if call.state is CallState.WAITING else None
        wait((future, stopped), timeout=look, return_when=FIRST_COMPLETED)
    if not future.done():
        if not future.cancel():
            stopper.answer_early(call)
            wait((future,))
        raise KeyboardInterrupt
    call.resume()
    return _read_result(call, job, future)


def _submit(call: ActiveCall, job: Job, executor: Executor) -> Future[Any]:
    if sends_elsewhere(executor):
        job.pickle_call()  # here, an error is the call's alone: Dask would log it, too
    try:
        return job.submit(executor)
    except Exception as error:
        raise _explain(call, job, error) from error


def _read_result(call: ActiveCall, job: Job, future: Future[Any]) -> Any:
    """Return what a function returned, or raise what it raised; take what it printed."""
    try:
        value = future.result()
    except Exception as error:
        if job.is_local:
            raise
        raise _explain(call, job, error) from error
    return job.read(value, call.capture.write)


def _explain(call: ActiveCall, job: Job, error: Exception) -> ToolError:
    """Return what to tell of an error that is not the function's, but the executor's."""
    if job.failure is not None:
        return job.failure
    text = _BROKEN if isinstance(error, BrokenExecutor) else _FAILED
    return ToolError(text.format(call.tool, describe_error(error).rstrip(".")))
