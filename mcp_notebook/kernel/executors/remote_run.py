"""What runs on an executor's worker: the tool's function, and the collection of what it gives.

What it prints goes back to the call; a coroutine is awaited and a generator's items are taken here,
as neither can be sent.

This module goes to workers by value, so that they need Python and cloudpickle, but not this
package: it imports nothing of it. Nothing in here runs in the user's kernel, unless a worker does.
"""

import asyncio
import contextvars
import inspect
import io
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from types import AsyncGeneratorType, GeneratorType
from typing import Any

MAX_PRINTED = 1_000_000
"""Characters that are brought back of what a function prints on its worker."""

MAX_ITEMS = 100_000
"""Items that are taken from a generator on its worker."""


class PrintedText:
    """What a function has printed, up to a bound."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = MAX_PRINTED
        self._dropped = 0

    def __str__(self) -> str:
        note = f"\n[... {self._dropped:,} characters dropped ...]\n" if self._dropped else ""
        return "".join(self._parts) + note

    def append(self, text: str) -> None:
        """Take one print."""
        self._parts.append(text[: self._room])
        self._room -= len(self._parts[-1])
        self._dropped += len(text) - len(self._parts[-1])


class ThreadStream(io.TextIOBase):
    """A stream that takes what one thread prints, and passes on what others do.

    A worker may run several functions at a time, each in a thread and with a stream of its own.

    Args:
        before: The stream in whose place it is.
        printed: Takes the text of the thread that makes the stream.
    """

    def __init__(self, before: Any, printed: PrintedText) -> None:
        self.before = before
        self._printed = printed
        self.thread: int | None = threading.get_ident()
        """The thread; None when its function has ended."""

    def write(self, text: str) -> int:
        """Take the thread's text, or pass on that of another."""
        if threading.get_ident() == self.thread:
            self._printed.append(text)
        else:
            while getattr(self.before, "thread", 0) is None:
                self.before = self.before.before
            self.before.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream in whose place it is."""
        self.before.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.before, name)


@contextmanager
def collect_prints(printed: PrintedText) -> Iterator[None]:
    """Collect what this thread prints in the block."""
    streams = ThreadStream(sys.stdout, printed), ThreadStream(sys.stderr, printed)
    sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        for name, stream in zip(("stdout", "stderr"), streams, strict=True):
            stream.thread = None
            if getattr(sys, name) is stream:  # else one that began later passes on to it
                setattr(sys, name, stream.before)


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


def run_remotely(
    pickled_call: bytes, ticket: str | None = None, trace: Mapping[str, str] | None = None
) -> tuple[str, bytes, str | None]:
    """Run a function on an executor's worker.

    Args:
        pickled_call: The tool's function and its arguments.
        ticket: Path of a file to remove now: whoever waits sees by that that the function begins.
        trace: The trace that spans of the function belong to, as W3C's headers; None for none.

    Returns:
        What the function printed; the pickle of what it returned or raised; the traceback if it
        raised, else None.
    """
    import cloudpickle  # noqa: PLC0415 - it is loaded on workers, and in the kernel when one is used

    if ticket is not None:
        with suppress(OSError):
            Path(ticket).unlink()
    printed = PrintedText()
    remote_traceback = None
    with collect_prints(printed):
        try:
            function, arguments = cloudpickle.loads(pickled_call)
            with join_trace(trace):
                result = _pickle_value(_complete(function(**arguments), printed))
        except BaseException as error:  # noqa: BLE001 - the edge that runs user code
            within = None if error.__traceback__ is None else error.__traceback__.tb_next
            remote_traceback = "".join(traceback.format_exception(type(error), error, within))
            result = _pickle_error(error)
    return str(printed), result, remote_traceback


def _complete(value: Any, printed: PrintedText) -> Any:
    """Return what can be sent of what the function returned."""
    if isinstance(value, AsyncGeneratorType) or inspect.isawaitable(value):
        value = _await(value, printed)
    if isinstance(value, (GeneratorType, map, filter, zip, enumerate, reversed)):
        return _mark_end(list(islice(value, MAX_ITEMS + 1)))
    return value


def _await(value: Any, printed: PrintedText) -> Any:
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
        with collect_prints(printed):
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


def _pickle_value(value: Any) -> bytes:
    import cloudpickle  # noqa: PLC0415

    try:
        pickled: bytes = cloudpickle.dumps(value)
    except Exception as error:  # noqa: BLE001 - pickling runs the value's code
        kind = type(value).__name__
        raise TypeError(f"a value of type {kind} cannot be sent from the worker: {error}") from None
    return pickled


def _pickle_error(error: BaseException) -> bytes:
    import cloudpickle  # noqa: PLC0415

    try:
        pickled: bytes = cloudpickle.dumps(error)
        cloudpickle.loads(pickled)  # some cannot be made again from what they were pickled with
    except Exception:  # noqa: BLE001 - an exception's own code
        text = f"{type(error).__name__}: {error}"
        pickled = cloudpickle.dumps(RuntimeError(text))
    return pickled
