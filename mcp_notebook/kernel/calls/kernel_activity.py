"""A kernel whose tools are called is in use: frontends and servers can see it on iopub.

Calls do not come over the kernel's shell channel, so that Jupyter would take a kernel that only
works for clients for an idle one; JupyterHub, mybinder and Jupyter Server cull those.
`KernelActivity` hears of calls from the `Invoker`, and publishes whether the kernel is
busy or idle once every `EVERY` seconds while calls come in or run, and at once when a long call
ends. What it publishes is true for the whole kernel: it is busy while a call runs that is long, or
while the kernel itself said so last (a cell runs); so no end of a call makes a running cell look
idle, and no end of a cell a running call.

Runs in the user's kernel: `KernelActivity` belongs to the endpoint's thread, apart from `install`,
`remove` and the statuses that ipykernel publishes from its own threads. Those and ours may cross;
each is therefore compared with what is true after it was sent.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any

from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.invoker import Invoker

logger = logging.getLogger(__name__)

EVERY = 1.0
"""Seconds between two notices, and from its arrival until a running call counts as long.
Jupyter Server cannot cull kernels that were idle for less than a second; mybinder waits for 600.
A notice costs 0.3 ms."""
_PARENT = "mcp_call"
"""Type of the request that the notices answer, as it were: Jupyter Server tells by this type
whether a status counts as use, and some clients fail on a message that answers nothing. A frontend
that waits for its own cell passes over it."""


class KernelActivity:
    """Publishes the kernel's status while clients call tools.

    Args:
        kernel: IPython's kernel.
        invoker: Runs the calls, and tells of them.
    """

    def __init__(self, kernel: Any, invoker: Invoker) -> None:
        self._kernel = kernel
        self._invoker = invoker
        invoker.observer = self
        self._parent: dict[str, Any] = {}
        self._original: Callable[..., None] | None = None
        self._is_kernel_busy = True  # the extension is being loaded by a cell
        self._has_long_call = False
        self._has_new_call = False
        self._loop: asyncio.AbstractEventLoop | None = None
        """The endpoint's."""
        self._timer: asyncio.Handle | None = None

    def install(self) -> None:
        """Follow what the kernel publishes; nothing true could be published otherwise."""
        self._original = getattr(self._kernel, "_publish_status", None)  # in ipykernel 6 and 7
        if self._original is not None:
            self._parent = self._kernel.session.msg_header(_PARENT)
            self._kernel._publish_status = self._publish_status  # noqa: SLF001

    def remove(self) -> None:
        """Stop publishing; idempotent. The endpoint's thread has ended."""
        if self._has_long_call:  # unloaded by a tool: nobody else would tell of the end
            self._has_long_call = False
            self._announce()
        if vars(self._kernel).get("_publish_status") == self._publish_status:
            del self._kernel._publish_status  # noqa: SLF001
            if self._kernel._publish_status != self._original:  # noqa: SLF001 - somebody's own
                self._kernel._publish_status = self._original  # noqa: SLF001

    # -- what the invoker tells us ----------------------------------------------------------------

    def call_submitted(self) -> None:
        """Count the kernel as used; on the endpoint's thread."""
        self._has_new_call = True
        self._loop = asyncio.get_running_loop()
        if self._timer is None:  # soon: when the call is on its way
            self._timer = self._loop.call_soon(self._publish, self._loop)

    def call_answered(self) -> None:
        """See whether that was the last long call; on any thread."""
        if self._has_long_call and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: `remove` follows
                self._loop.call_soon_threadsafe(self._publish_end)

    # -- what is published -------------------------------------------------------------------------

    def _publish(self, loop: asyncio.AbstractEventLoop) -> None:
        """Publish what is true now, again and again until there are no calls."""
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
        """Publish the truth, and once more if it has changed meanwhile: the last word is right."""
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
