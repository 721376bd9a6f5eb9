"""Stops calls, for their client, for the user or for their time limit.

Runs in the user's kernel, on any thread. The call's code is asked to stop. A call on the main
thread is answered when its code has stopped, or after `STOP_LIMIT` if it does not react. Any other
call is answered at once, because no other call waits for it. `interrupts` interrupts the code. Code
that has not ended after twice `STOP_LIMIT` is interrupted again and again.
"""

import logging
import threading
from collections.abc import Callable

from mcp_notebook.errors import Cancelled, TimedOut
from mcp_notebook.kernel.calls.active_call import (
    BY_INTERRUPT,
    INTERRUPTED,
    ActiveCall,
    StopRequest,
)
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.call_queue import CallQueue
from mcp_notebook.kernel.calls.outcome import CallConverter

logger = logging.getLogger(__name__)

STOP_LIMIT = 1.0
"""Seconds that code has to stop before its call is answered anyway."""
_LONGEST_PAUSE = 60.0
"""Maximum seconds between two interrupts of code that does not react."""
FORK_LIMIT = 600.0
"""Seconds that a call in a copy of the kernel may run if nothing else limits it: a lock that
another thread held at the fork is never released in the copy."""


class Stopper:
    """Stops the calls of a queue.

    Args:
        queue: Holds the calls.
        converter: Creates the results of stopped calls.
        time_limit: Seconds that a call may run if its tool has no limit; None: no limit.
    """

    def __init__(
        self,
        queue: CallQueue,
        converter: CallConverter,
        time_limit: float | None,
    ) -> None:
        self._queue = queue
        self._converter = converter
        self._time_limit = time_limit

    def stop(self, call: ActiveCall, request: StopRequest) -> None:
        """Stop a call: at once if it has not begun, otherwise when its code reacts.

        Args:
            call: Any call; one that has ended or is stopping is left alone.
            request: The reason.
        """
        if self._queue.withdraw(call, request):
            call.hand_out(self._converter.convert_stop(call, request.error))
            self._queue.start_waiting(call.tool)
            return
        interrupt = call.request_stop(request)
        if interrupt is None:
            return
        interrupt()
        if request.state is CallState.LOST:
            return  # the conversation's goodbye gives the reason
        if call.run != "main":
            self.answer_early(call)
            if call.interrupt is not None:  # its code has not ended
                self._schedule(call, 2 * STOP_LIMIT, lambda call: self._insist(call, STOP_LIMIT))
        else:
            self._schedule(call, STOP_LIMIT, self._interrupt_step)

    def interrupt(self, call: ActiveCall) -> None:
        """Stop a call at the user's request."""
        call.is_interrupted = True
        self.stop(call, StopRequest(CallState.CANCELLED, Cancelled(INTERRUPTED), BY_INTERRUPT))

    def interrupt_all(self) -> None:
        """Stop all running calls: the user pressed "Interrupt" while no cell ran."""
        for call in self._queue.calls:
            if call.state is not CallState.QUEUED:
                self.interrupt(call)

    def limit_time(self, call: ActiveCall) -> None:
        """Start a call's time limit."""
        limit = self.find_limit(call)
        if limit is not None:
            error = self._make_error(call, limit)
            request = StopRequest(CallState.TIMED_OUT, error)
            self._schedule(call, limit, lambda call: self.stop(call, request))

    def find_limit(self, call: ActiveCall) -> float | None:
        """Return how many seconds a call may run; None: no limit."""
        own_limit = _get_own_limit(call)
        limit = self._time_limit if own_limit is None else own_limit
        return FORK_LIMIT if limit is None and call.run == "fork" else limit

    def _make_error(self, call: ActiveCall, limit: float) -> TimedOut:
        is_own = _get_own_limit(call) is not None
        is_set = is_own or bool(self._time_limit)
        return TimedOut(call.tool, limit, is_own=is_own, is_set=is_set, kind=call.kind)

    def answer_early(self, call: ActiveCall) -> None:
        """Answer a call that has to stop while its code still runs."""
        request = call.stop_request
        assert request is not None
        with call.lock:
            if call.has_ended:
                return
            call.is_stopping = True
        call.answer(request.state, self._converter.convert_stop(call, request.error))

    def _interrupt_step(self, call: ActiveCall) -> None:
        """Interrupt a coroutine that never awaits, like a sync tool."""
        if call.capture.steps.interrupt():
            self._schedule(call, STOP_LIMIT, self._answer_unresponsive)
        else:
            self._answer_unresponsive(call)

    def _answer_unresponsive(self, call: ActiveCall) -> None:
        """Answer a call whose code does not react, and interrupt it again."""
        if not call.has_ended:
            self.answer_early(call)
            self._insist(call, STOP_LIMIT)

    def _insist(self, call: ActiveCall, pause: float) -> None:
        """Interrupt a call's code until it ends, after longer and longer pauses.

        One interrupt can be missed: see `interrupter`. The pauses leave the code time to clean up.
        """
        interrupt = call.interrupt
        if interrupt is None:  # the code has ended
            return
        interrupt()
        call.capture.steps.interrupt()
        longer = min(2 * pause, _LONGEST_PAUSE)
        self._schedule(call, pause, lambda call: self._insist(call, longer))

    def _schedule(
        self, call: ActiveCall, seconds: float, function: Callable[[ActiveCall], None]
    ) -> None:
        # A thread, because the code that has to stop may hold the main thread. Only calls with a
        # limit, or that are stopped, need one.
        timer = threading.Timer(seconds, function, (call,))
        timer.daemon, timer.name = True, "mcp-notebook-limit"
        call.timers.append(timer)
        try:
            timer.start()
        except RuntimeError:  # no more threads: the call is answered at its end
            logger.warning("a limit of a call of %r cannot be kept", call.tool, exc_info=True)


def _get_own_limit(call: ActiveCall) -> float | None:
    return None if call.declared is None else call.declared.options.time_limit
