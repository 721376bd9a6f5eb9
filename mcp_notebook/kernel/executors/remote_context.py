"""The ``Context`` of a call whose function runs on an executor's worker.

It sends progress and log messages to the kernel if the engine has a channel, and drops them
otherwise.

This module and all that it imports of this package are sent to workers by value, with `remote_run`.
"""

import json
import os
import time
from contextlib import suppress
from functools import partial
from typing import Any

from mcp_notebook.kernel.tools.reporting import ReportingContext

PROGRESS_INTERVAL = 0.05
"""Seconds between two reports of progress; those in between are dropped."""


class Channel:
    """The worker's end of a channel to the kernel; this base class drops all messages."""

    def send(self, *message: Any) -> None:
        """Send a message: its kind and its fields, all of them JSON values."""

    def is_withdrawn(self) -> bool:
        """Return whether the call was answered, so that the function should stop."""
        return False


class FileChannel(Channel):
    """A file on this machine, which the kernel reads, and removes when the call has ended.

    Args:
        path: Of the file.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def send(self, *message: Any) -> None:
        """Append the message as a line."""
        with suppress(OSError):
            # Without O_CREAT: the file is gone when the call has ended.
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(descriptor, json.dumps(message).encode() + b"\n")
            finally:
                os.close(descriptor)

    def is_withdrawn(self) -> bool:
        """Return whether the file is gone."""
        return not os.path.exists(self._path)  # noqa: PTH110 - a worker needs no pathlib


class DaskChannel(Channel):
    """The events of Dask's scheduler.

    Args:
        topic: Of the events.
        number: Of the call.
    """

    def __init__(self, topic: str, number: str) -> None:
        from distributed import get_worker  # noqa: PLC0415 - a worker of Dask's has it

        self._topic, self._number = topic, number
        self._worker = get_worker()
        self._task = self._worker.get_current_task()

    def send(self, *message: Any) -> None:
        """Log the message as an event."""
        with suppress(Exception):  # the connection to the scheduler is lost
            self._worker.log_event(self._topic, [self._number, *message])

    def is_withdrawn(self) -> bool:
        """Return whether the scheduler has cancelled the task."""
        task = self._worker.state.tasks.get(self._task)
        return task is None or task.state == "cancelled"


def open_channel(address: tuple[str, ...] | None) -> Channel:
    """Return the worker's end of a channel.

    Args:
        address: Its kind, and the arguments of that class; None: there is no channel.
    """
    kinds = {"dask": DaskChannel, "file": FileChannel}
    return Channel() if address is None else kinds[address[0]](*address[1:])


class WorkerCancelled(Exception):
    """The call has ended, so the function should stop."""


class ProgressSender:
    """Sends progress to the kernel, but not more often than it is read.

    Args:
        channel: To the kernel.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._last_report = float("-inf")

    def __call__(self, done: float, total: float | None, message: str | None) -> None:
        """Send progress, unless the last report was a moment ago and more is to come."""
        now = time.monotonic()
        if done == total or now - self._last_report >= PROGRESS_INTERVAL:
            self._last_report = now
            self._channel.send("progress", done, total, message)


class RemoteContext(ReportingContext):
    """The ``Context`` of a call on a worker.

    Args:
        tool: Name of the tool.
        channel: To the kernel.
        wants_progress: Whether the client asked for progress.
    """

    can_elicit = False
    """A worker cannot ask the user."""

    def __init__(
        self,
        tool: str = "",
        channel: Channel | None = None,
        *,
        wants_progress: bool = False,
    ) -> None:
        channel = channel or Channel()
        error = f"The call of {tool!r} was stopped."
        super().__init__(
            tool,
            send_progress=ProgressSender(channel) if wants_progress else None,
            send_log=partial(channel.send, "log"),
            find_stop=lambda: WorkerCancelled(error) if channel.is_withdrawn() else None,
        )

    def elicit(self, *_args: Any, **_options: Any) -> Any:
        """Refuse to ask the client's user."""
        raise RuntimeError(
            f"The tool {self.tool!r} cannot ask the user: its function runs on a worker of an "
            "executor. Check `ctx.can_elicit` first, or ask in a tool without `executor=`."
        )

    elicit_async = elicit
