"""What runs on an executor's worker: the tool's function, and the collection of what it gives.

What it prints and displays goes back to the call, and so do the figures that it leaves open in
pyplot. A coroutine is awaited and a generator's items are taken here, as neither can be sent.

This module goes to workers by value, with the modules that it imports of this room, so that they
need Python and cloudpickle, but not this package. Nothing in here runs in the user's kernel, unless
a worker does.
"""

import asyncio
import contextvars
import importlib
import inspect
import io
import os
import pickle
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager, suppress
from itertools import islice
from types import AsyncGeneratorType, GeneratorType
from typing import Any

from mcp_notebook.kernel.executors.remote_context import RemoteContext, WayBack, open_way
from mcp_notebook.kernel.executors.remote_outputs import (
    Outputs,
    close_figures,
    collect,
    draw,
    open_figures,
)

MAX_ITEMS = 100_000
"""Items that are taken from a generator on its worker."""
_WATCH = "mcp-notebook-parent"
"""The thread of a worker that ends it when its parent is gone."""
_WATCH_SECONDS = 2.0
"""Seconds between two looks whether it is, where nothing tells."""


@contextmanager
def join_trace(trace: Mapping[str, str] | None) -> Iterator[None]:
    """Let spans that this thread makes in the block belong to a trace, given as W3C's headers."""
    token = None
    if trace:
        # A worker may have no OpenTelemetry, or another version of it.
        with suppress(Exception):
            from opentelemetry import context  # noqa: PLC0415 - the kernel uses it, too
            from opentelemetry.baggage.propagation import W3CBaggagePropagator  # noqa: PLC0415
            from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415

            parent = tracecontext.TraceContextTextMapPropagator().extract(trace)
            token = context.attach(W3CBaggagePropagator().extract(trace, parent))
    try:
        yield
    finally:
        if token is not None:
            context.detach(token)


class SharedValue:
    """Stands for a future of Dask's, whose value is on the worker.

    Args:
        value: The future's.
    """

    def __init__(self, value: Any) -> None:
        self._value = value

    def result(self) -> Any:
        """Return the value."""
        return self._value


class CallUnpickler(pickle.Unpickler):
    """Reads a function and its arguments, with the worker's own things in the place of ours.

    Args:
        pickled_call: The function and its arguments.
        way: Of the call's context.
        trace: The call's.
        values: Those of the futures that the function uses.
    """

    def __init__(
        self,
        pickled_call: bytes,
        way: WayBack,
        trace: Mapping[str, str] | None,
        values: Sequence[Any],
    ) -> None:
        super().__init__(io.BytesIO(pickled_call))
        self._way, self._trace, self._values = way, trace, values

    def persistent_load(self, pid: Any) -> Any:
        """Return what stands for a thing of ours."""
        if pid == "Context":
            return RemoteContext
        if pid[0] == "context":
            return RemoteContext(pid[1], self._trace, self._way, wants_progress=pid[2])
        if pid[0] == "future":
            return SharedValue(self._values[pid[1]])
        return None  # the mark of `@mcp_tool`


def run_remotely(
    pickled_call: bytes,
    address: tuple[str, ...] | None = None,
    trace: Mapping[str, str] | None = None,
    values: Sequence[Any] = (),
) -> tuple[list[Any], bytes, str | None]:
    """Run a function on an executor's worker.

    Args:
        pickled_call: The tool's function and its arguments.
        address: Of the way back to the kernel; None if there is none.
        trace: The trace that spans of the function belong to, as W3C's headers; None for none.
        values: Those of the futures that the function uses.

    Returns:
        What the function printed and displayed; the pickle of what it returned or raised, together
        with the figures that are open; the traceback if it raised, else None; an empty one if it
        returned what cannot be pickled.
    """
    _end_with_parent()
    way = open_way(address)
    way.send("begin")
    outputs = Outputs()
    remote_traceback = None
    _import_displays(pickled_call)
    before = open_figures()
    with collect(outputs):
        try:
            function, arguments = CallUnpickler(pickled_call, way, trace, values).load()
            with join_trace(trace):
                value = _complete(function(**arguments), outputs)
            try:
                result = _pickle(value, _find_new(before), outputs)
            except Exception as error:  # noqa: BLE001 - pickling runs the value's code
                remote_traceback = ""
                unsent = _describe_unsent(value, error)
                result = _pickle_error(unsent, _find_new(before), outputs)
        except BaseException as error:  # noqa: BLE001 - the edge that runs user code
            within = None if error.__traceback__ is None else error.__traceback__.tb_next
            remote_traceback = "".join(traceback.format_exception(type(error), error, within))
            result = _pickle_error(error, _find_new(before), outputs)
    close_figures(_find_new(before))
    return outputs.items, result, remote_traceback


def _end_with_parent() -> None:
    """End a worker of multiprocessing when the process that made it is gone, also if it was killed.

    The workers of a pool hold the ends of each other's queues: they would wait for work for ever.
    """
    # Late: a kernel imports this module too, and most notebooks do without multiprocessing.
    import multiprocessing  # noqa: PLC0415

    parent = multiprocessing.parent_process()
    is_worker = threading.current_thread() is threading.main_thread()  # and no thread of a kernel
    if (
        parent is None
        or not is_worker
        or any(thread.name == _WATCH for thread in threading.enumerate())
    ):
        return
    maker = os.getppid()  # another process where a server forks the workers

    def watch() -> None:
        # The workers that were forked later hold the other end of what tells of the parent's death.
        while parent.is_alive() and os.getppid() == maker:
            parent.join(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name=_WATCH, daemon=True).start()


def _import_displays(pickled_call: bytes) -> None:
    """Import what the function may display with: `collect` changes only what is imported."""
    for word, module in ((b"pyplot", "matplotlib.pyplot"), (b"IPython", "IPython.display")):
        if word in pickled_call:
            with suppress(Exception):  # the function says itself what is missing
                importlib.import_module(module)


def _find_new(before: list[Any]) -> list[Any]:
    """Return the figures that are open, without those of before."""
    return [figure for figure in open_figures() if all(figure is not other for other in before)]


def _complete(value: Any, outputs: Outputs) -> Any:
    """Return what can be sent of what the function returned."""
    if isinstance(value, AsyncGeneratorType) or inspect.isawaitable(value):
        value = _await(value, outputs)
    if isinstance(value, (GeneratorType, map, filter, zip, enumerate, reversed)):
        return _mark_end(list(islice(value, MAX_ITEMS + 1)))
    return value


def _await(value: Any, outputs: Outputs) -> Any:
    """Return the result of an awaitable, or the items of an async generator."""

    async def wait() -> Any:
        result = value if isinstance(value, AsyncGeneratorType) else await value
        if not isinstance(result, AsyncGeneratorType):
            return result
        items: list[Any] = []
        async with aclosing(result):
            async for item in result:
                items.append(item)
                if len(items) > MAX_ITEMS:
                    break
        return _mark_end(items)

    def run() -> Any:
        with collect(outputs):
            return asyncio.run(wait())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    # The worker has a loop of its own on this thread, as ipyparallel's have.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(contextvars.copy_context().run, run).result()


def _mark_end(items: list[Any]) -> list[Any]:
    if len(items) > MAX_ITEMS:
        items[-1] = f"... only the first {MAX_ITEMS:,} items were taken ..."
    return items


def _describe_unsent(value: Any, error: Exception) -> TypeError:
    """Say which value cannot be pickled, and why."""
    reason = str(error).rstrip(".") or type(error).__name__
    return TypeError(f"a value of type {type(value).__name__} cannot be pickled ({reason})")


def _pickle_error(error: BaseException, figures: list[Any], outputs: Outputs) -> bytes:
    try:
        pickled = _pickle(error, [], outputs)
        pickle.loads(pickled)  # noqa: S301 - some cannot be made again from what they were pickled with
    except Exception:  # noqa: BLE001 - an exception's own code
        error = RuntimeError(f"{type(error).__name__}: {error}")
    return _pickle(error, figures, outputs)


def _pickle(value: Any, figures: list[Any], outputs: Outputs) -> bytes:
    """Pickle a value together with figures, one of which it may be."""
    import cloudpickle  # noqa: PLC0415 - it is loaded on workers, and in the kernel when one is used

    pickled: bytes
    try:
        pickled = cloudpickle.dumps((value, figures))
    except Exception:
        if not figures:
            raise
        pickled = cloudpickle.dumps((value, []))
        for figure in figures:
            outputs.display({"image/png": draw(figure) or b""}, raw=True)
    return pickled
