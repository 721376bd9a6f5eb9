"""The queue of a notebook's calls: those that wait, run or are still stopping.

Runs in the user's kernel, on any thread; its lock also guards its calls. Only the queue decides
which call may begin. It has a bounded number of places: one guest (a caller other than the user)
may take half of them, and all guests together three quarters, so the user's calls always find one.
Of the calls that wait, the user's begin first; then guests take turns.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence

from mcp_notebook.kernel.calls.active_call import ActiveCall, StopRequest
from mcp_notebook.kernel.calls.call import CallState


class CallQueue:
    """The calls of a notebook, in the order of their arrival.

    Args:
        max_calls: How many may wait or run at the same time.
        run: Starts a call whose turn has come.
    """

    def __init__(
        self, max_calls: int, run: Callable[[ActiveCall], None] = lambda _call: None
    ) -> None:
        self._run = run
        self._max_calls = max_calls
        self._max_of_guest = max(1, max_calls // 2)
        self._max_of_guests = max(1, max_calls - max_calls // 4)
        self.lock = threading.Lock()
        """Guards this object and the state of its calls."""
        self._calls: list[ActiveCall] = []
        self._served: dict[str, None] = {}
        """The guests whose calls began last, the most recent one at the end. More than can have
        calls here are not remembered: a guest who is forgotten has waited longest anyway."""

    @property
    def calls(self) -> tuple[ActiveCall, ...]:
        """The calls that wait, run or are still stopping, oldest first."""
        with self.lock:
            return tuple(self._calls)

    @property
    def line(self) -> tuple[ActiveCall, ...]:
        """The calls in the order in which they began or will begin."""
        with self.lock:
            began = [call for call in self._calls if call.state is not CallState.QUEUED]
            waiting = [call for call in self._calls if call.state is CallState.QUEUED]
            return (*began, *self._line_up(waiting))

    def choose(self, waiting: Sequence[ActiveCall]) -> ActiveCall:
        """Return the one of several waiting calls whose turn it is, and count it as begun."""
        with self.lock:
            call = self._line_up(waiting)[0]
            self._note_turn(call)
            return call

    def _note_turn(self, call: ActiveCall) -> None:
        guest = call.client.guest
        if guest:
            self._served.pop(guest, None)
            self._served[guest] = None
            if len(self._served) > self._max_calls:
                del self._served[next(iter(self._served))]

    def _line_up(self, waiting: Sequence[ActiveCall]) -> Sequence[ActiveCall]:
        """Return waiting calls in the order of their turns; they are given oldest first."""
        if len(waiting) < 2:  # noqa: PLR2004 - nearly always
            return waiting
        last_turns = {guest: number for number, guest in enumerate(self._served, start=1)}
        rounds: Counter[str] = Counter()
        turns: dict[ActiveCall, tuple[int, int]] = {}
        for call in waiting:
            guest = call.client.guest
            if guest:
                rounds[guest] += 1
            turns[call] = rounds[guest], last_turns.get(guest, 0)
        return sorted(turns, key=turns.__getitem__)

    def add(self, call: ActiveCall) -> str | None:
        """Add a call, which waits for its turn.

        Returns:
            None, or a sentence that explains why there is no room for it.
        """
        with self.lock:
            lack = self._find_lack(call.client.guest)
            if lack is None:
                self._calls.append(call)
            return lack

    def _find_lack(self, guest: str) -> str | None:
        if len(self._calls) >= self._max_calls:
            return f"{self._max_calls} calls are running or waiting already."
        if not guest:
            return None
        guests = [other.client.guest for other in self._calls if other.client.guest]
        if guests.count(guest) >= self._max_of_guest:
            return f"{self._max_of_guest} of your calls are running or waiting already."
        if len(guests) >= self._max_of_guests:
            return (
                f"{self._max_of_guests} calls of the user's guests are running or waiting already, "
                "and the other places are the user's."
            )
        return None

    def add_started(self, call: ActiveCall) -> None:
        """Add a call that runs at once, even beyond the limit."""
        with self.lock:
            call.is_started = True
            self._calls.append(call)

    def start_waiting(self, tool: str) -> None:
        """Start waiting calls of a tool, as many as may run at the same time."""
        while (call := self.start_next(tool)) is not None:
            self._run(call)

    def start_next(self, tool: str) -> ActiveCall | None:
        """Mark the waiting call of a tool whose turn it is as started, if another may run.

        Returns:
            The call; None if none waits, or the limit is reached.
        """
        with self.lock:
            calls = [call for call in self._calls if call.tool == tool]
            waiting = [call for call in calls if not (call.is_started or call.has_ended)]
            if not waiting:
                return None
            call = self._line_up(waiting)[0]
            most = call.declared.options.concurrency_limit if call.declared else None
            if most is not None and sum(other.is_started for other in calls) >= most:
                return None
            call.is_started = True
            if call.run != "main":  # else its turn comes when the main thread is free
                self._note_turn(call)
            return call

    def withdraw(self, call: ActiveCall, request: StopRequest) -> bool:
        """End a call that has not begun; the caller sends the result.

        Args:
            call: Any call; one that has begun is left alone.
            request: The reason.

        Returns:
            Whether it was ended.
        """
        with self.lock:
            if call.state is not CallState.QUEUED:
                return False
            call.stop_request = request
            call.move(request.state)
            self._calls.remove(call)
            return True

    def finish(self, call: ActiveCall) -> None:
        """Remove a call whose code has ended."""
        with self.lock:
            if call in self._calls:
                self._calls.remove(call)
            call.is_stopping = False
            call.interrupt = None
        for timer in call.timers:
            timer.cancel()
