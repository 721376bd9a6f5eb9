"""A call whose function an executor of the author's runs: a process pool, a thread pool, Dask.

Runs in the user's kernel, on a thread of the call that waits for the executor's worker. A worker
that has begun cannot be stopped; its call is answered, and what it returns is thrown away.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import Any

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.stopping import Stopper

_WORKER_LOOK = 0.1
"""Seconds between two looks at whether a worker has begun."""
_BROKEN = (
    "A worker of the executor of {!r} ended: {} The executor is of no more use: the user has to "
    "make a new one and declare the tool again. (A worker process must be able to import the "
    "function: put it into a module.)"
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
        stopper: Limits the call's time from when a worker has begun; answers it if it has to stop
            and the worker goes on.

    Raises:
        KeyboardInterrupt: The call has to stop.
        ToolError: The executor is broken.
        BaseException: What the function raised.
    """
    stopped: Future[None] = Future()
    call.set_interrupt(lambda: stopped.set_result(None))
    future = executor.submit(function, **arguments)
    call.wait_for("a free worker")
    while not future.done() and not stopped.done() and call.stop_request is None:
        if call.state is CallState.WAITING and future.running():
            call.resume()
            stopper.limit_time(call)  # not before a worker has begun
        look = _WORKER_LOOK if call.state is CallState.WAITING else None
        wait((future, stopped), timeout=look, return_when=FIRST_COMPLETED)
    if future.done():
        call.resume()
        try:
            return future.result()
        except BrokenExecutor as error:
            raise ToolError(_BROKEN.format(call.tool, error)) from error
    if not future.cancel():
        stopper.answer_early(call)
        wait((future,))
    raise KeyboardInterrupt
