"""Publishes the kernel's status on iopub while clients call tools.

Calls do not use the kernel's shell channel, so Jupyter would consider a kernel that only serves
clients idle, and JupyterHub, mybinder and Jupyter Server cull idle kernels. `KernelActivity` is
told of calls by the `Invoker` and its log. It publishes busy or idle every `EVERY` seconds while
calls arrive or run, and at once when a long call ends. The status covers the whole kernel: busy
while a long call runs, or while ipykernel's last own status was busy (a cell runs). So the end of a
call never makes a running cell look idle, nor the end of a cell a running call.

Runs in the user's kernel, on the endpoint's thread, except for `install`, `remove` and the statuses
that ipykernel publishes from its own threads. Their messages and ours may overlap, so the status is
checked again after each message.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any

from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.invoker import Invoker
from mcp_notebook.kernel.safe.replacement import replace_attribute

logger = logging.getLogger(__name__)

EVERY = 1.0
"""Seconds between two statuses, and from its arrival until a running call counts as long.
Jupyter Server cannot cull kernels that were idle for less than a second; mybinder waits for 600.
Publishing takes 0.3 ms."""
_PARENT = "mcp_call"
"""Message type of the parent header. Jupyter Server decides by it whether a status counts as
activity, and some clients fail on a message without a parent. A frontend that waits for its own
cell ignores it."""


class KernelActivity:
    """Publishes the kernel's status while clients call tools.

    Args:
        kernel: IPython's kernel.
        invoker: Runs the calls, and notifies of them.
    """

    def __init__(self, kernel: Any, invoker: Invoker) -> None:
        self._kernel = kernel
        self._invoker = invoker
        invoker.on_submitted = self.call_submitted
        self._parent: dict[str, Any] = {}
        self._original: Callable[..., None] | None = None
        self._undo: Callable[[], None] = lambda: None
        self._is_kernel_busy = True  # a cell is loading the extension
        self._has_long_call = False
        self._has_new_call = False
        self._loop: asyncio.AbstractEventLoop | None = None
        """The endpoint's loop."""
        self._timer: asyncio.Handle | None = None

    def install(self) -> None:
        """Intercept the statuses that the kernel publishes."""
        self._original = getattr(self._kernel, "_publish_status", None)  # in ipykernel 6 and 7
        if self._original is not None:
            self._parent = self._kernel.session.msg_header(_PARENT)
            self._undo = replace_attribute(self._kernel, "_publish_status", self._publish_status)
            self._invoker.log.subscribe(self.call_changed)

    def remove(self) -> None:
        """Stop publishing; idempotent. The endpoint's thread has ended."""
        self._invoker.log.unsubscribe(self.call_changed)
        if self._has_long_call:  # a tool unloads the extension: its end would not be published
            self._has_long_call = False
            self._announce()
        self._undo()

    # -- called by the invoker and the log ---------------------------------------------------------

    def call_submitted(self) -> None:
        """Note activity; on the endpoint's thread."""
        self._has_new_call = True
        if self._timer is None:  # soon: once the call has been started
            self._loop = asyncio.get_running_loop()
            self._timer = self._loop.call_soon(self._publish, self._loop)

    def call_changed(self) -> None:
        """Check whether the last long call has ended; on any thread."""
        if self._has_long_call and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: `remove` follows
                self._loop.call_soon_threadsafe(self._publish_end)

    # -- what is published -------------------------------------------------------------------------

    def _publish(self, loop: asyncio.AbstractEventLoop) -> None:
        """Publish the status, repeatedly until there are no calls."""
        was_long, self._has_long_call = self._has_long_call, self._runs_long_call()
        came, self._has_new_call = self._has_new_call, False
        if came or was_long or self._invoker.calls:
            self._announce()
            self._timer = loop.call_later(EVERY, self._publish, loop)
        else:
            self._timer = None

    def _publish_end(self) -> None:
        """Publish at once that the last long call has ended."""
        if self._has_long_call and not self._runs_long_call():
            self._has_long_call = False
            self._announce()

    def _runs_long_call(self) -> bool:
        threshold = monotonic() - EVERY
        return any(
            call.arrived <= threshold
            and call.state is not CallState.QUEUED
            and (call.is_stopping or not call.has_ended)
            for call in self._invoker.calls
        )

    @property
    def _is_busy(self) -> bool:
        return self._is_kernel_busy or self._has_long_call

    def _announce(self) -> None:
        """Publish the status, and repeat that until it has not changed in the meantime."""
        try:
            while self._original is not None:
                is_busy = self._is_busy
                self._original("busy" if is_busy else "idle", "shell", self._parent)
                if is_busy == self._is_busy:
                    break
        except Exception:  # the kernel shuts down
            logger.exception("the kernel's status could not be published")

    def _publish_status(self, status: str, channel: str, *args: Any, **kwargs: Any) -> None:
        """Stand in for the kernel's own method, on any of its threads."""
        if channel == "shell":
            self._is_kernel_busy = status == "busy"
        assert self._original is not None
        self._original(status, channel, *args, **kwargs)
        if status == "idle" and self._has_long_call:
            self._announce()
