"""Runs a tool's function on an executor's worker, and collects its outputs.

Printed text, displays and figures left open in pyplot are returned to the call. Coroutines are
awaited and generators exhausted here, because neither can be pickled.

This module and those that it imports of this room are sent to workers by value: workers need
Python and cloudpickle, but not this package. Nothing in here runs in the user's kernel, unless a
worker does.
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
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager, suppress
from itertools import islice
from time import sleep
from types import AsyncGeneratorType, GeneratorType
from typing import Any

from mcp_notebook.kernel.executors.remote_context import Channel, RemoteContext, open_channel
from mcp_notebook.kernel.executors.remote_outputs import (
    Outputs,
    close_figures,
    collect,
    open_figures,
)

MAX_ITEMS = 100_000
"""Items that are taken from a generator."""
_WATCH = "mcp-notebook-parent"
"""Name of the thread that ends a worker when its parent has ended."""
_WATCH_SECONDS = 2.0
"""Seconds between two checks of the parent, in case no event reports its end."""


class SharedValue:
    """Replaces a Dask future by its value on the worker.

    Args:
        value: Of the future.
    """

    def __init__(self, value: Any) -> None:
        self._value = value

    def result(self) -> Any:
        """Return the value."""
        return self._value


class CallUnpickler(pickle.Unpickler):
    """Unpickles a function and its arguments, replacing our objects by the worker's.

    Args:
        pickled_call: The function and its arguments.
        channel: Of the call's context.
        values: Those of the futures that the function uses.
    """

    def __init__(
        self,
        pickled_call: bytes,
        channel: Channel,
        values: Sequence[Any],
    ) -> None:
        super().__init__(io.BytesIO(pickled_call))
        self._channel, self._values = channel, values

    def persistent_load(self, pid: Any) -> Any:
        """Return the worker's object for a reference."""
        if pid == "Context":
            return RemoteContext
        if pid[0] == "context":
            return RemoteContext(pid[1], self._channel, wants_progress=pid[2])
        if pid[0] == "future":
            return SharedValue(self._values[pid[1]])
        return None  # the mark of `@mcp_tool`


def run_remotely(
    pickled_call: bytes,
    address: tuple[str, ...] | None = None,
    values: Sequence[Any] = (),
) -> tuple[list[Any], bytes, str | None]:
    """Run a function on an executor's worker.

    Args:
        pickled_call: The tool's function and its arguments.
        address: Of the channel to the kernel; None if there is none.
        values: Those of the futures that the function uses.

    Returns:
        The outputs; the pickle of the value or the exception, with the open figures; and the
        traceback if the function raised, else None (empty if the value cannot be pickled).
    """
    _end_with_parent()
    channel = open_channel(address)
    channel.send("begin")
    outputs = Outputs()
    remote_traceback = None
    _import_displays(pickled_call)
    before = open_figures()
    with collect(outputs):
        try:
            function, arguments = CallUnpickler(pickled_call, channel, values).load()
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
    """End a multiprocessing worker when its parent has ended, even if that was killed.

    The workers of a pool hold the ends of each other's queues: they would wait for work forever.
    """
    # Late: a kernel imports this module too, and most notebooks do without multiprocessing.
    import multiprocessing.connection  # noqa: PLC0415

    parent = multiprocessing.parent_process()
    is_worker = threading.current_thread() is threading.main_thread()  # not a thread of a kernel
    if (
        parent is None
        or not is_worker
        or any(thread.name == _WATCH for thread in threading.enumerate())
    ):
        return
    maker = os.getppid()  # with a fork server, not the same as `parent`
    sentinel: int | None = parent.sentinel  # None in a worker of loky

    def watch() -> None:
        # Workers forked later hold the other end of the pipe that reports the parent's death.
        while os.getppid() == maker:
            if sentinel is None:
                sleep(_WATCH_SECONDS)
            elif multiprocessing.connection.wait([sentinel], _WATCH_SECONDS):
                break
        os._exit(1)

    threading.Thread(target=watch, name=_WATCH, daemon=True).start()


def _import_displays(pickled_call: bytes) -> None:
    """Import the modules that the function may display with: `collect` patches imported ones."""
    for word, module in ((b"pyplot", "matplotlib.pyplot"), (b"IPython", "IPython.display")):
        if word in pickled_call:
            with suppress(Exception):  # the function itself reports what is missing
                importlib.import_module(module)


def _find_new(before: list[Any]) -> list[Any]:
    """Return the figures that were opened since."""
    return [figure for figure in open_figures() if all(figure is not other for other in before)]


def _complete(value: Any, outputs: Outputs) -> Any:
    """Return the function's value in a form that can be pickled."""
    if isinstance(value, AsyncGeneratorType) or inspect.isawaitable(value):
        value = _await(value, outputs)
    if isinstance(value, (GeneratorType, map, filter, zip, enumerate, reversed)):
        items: list[Any] = []
        with _showing(items, outputs):
            items.extend(islice(value, MAX_ITEMS + 1))
        return _mark_end(items)
    return value


@contextmanager
def _showing(items: list[Any], outputs: Outputs) -> Iterator[None]:
    """Display what a generator yielded before it fails."""
    try:
        yield
    except BaseException:
        if items:
            outputs.display(items)
        raise


def _await(value: Any, outputs: Outputs) -> Any:
    """Return the result of an awaitable, or the items of an async generator."""

    async def wait() -> Any:
        result = value if isinstance(value, AsyncGeneratorType) else await value
        if not isinstance(result, AsyncGeneratorType):
            return result
        items: list[Any] = []
        with _showing(items, outputs):
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
    # A loop already runs on this thread, as on ipyparallel's workers.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(contextvars.copy_context().run, run).result()


def _mark_end(items: list[Any]) -> list[Any]:
    if len(items) > MAX_ITEMS:
        items[-1] = f"... only the first {MAX_ITEMS:,} items were taken ..."
    return items


def _describe_unsent(value: Any, error: Exception) -> TypeError:
    """Return the error for a value that cannot be pickled."""
    reason = str(error).rstrip(".") or type(error).__name__
    return TypeError(f"a value of type {type(value).__name__} cannot be pickled ({reason})")


def _pickle_error(error: BaseException, figures: list[Any], outputs: Outputs) -> bytes:
    try:
        pickled = _pickle(error, [], outputs)
        pickle.loads(pickled)  # noqa: S301 - some exceptions cannot be unpickled
    except Exception:  # noqa: BLE001 - an exception's own code
        error = RuntimeError(f"{type(error).__name__}: {error}")
    return _pickle(error, figures, outputs)


def _pickle(value: Any, figures: list[Any], outputs: Outputs) -> bytes:
    """Pickle a value together with figures; it may be one of them."""
    import cloudpickle  # noqa: PLC0415 - it is loaded on workers, and in the kernel when one is used

    pickled: bytes
    try:
        pickled = cloudpickle.dumps((value, figures))
    except Exception:
        if not figures:
            raise
        pickled = cloudpickle.dumps((value, []))
        outputs.write("[The open figures cannot be sent from the worker.]\n")
    return pickled
