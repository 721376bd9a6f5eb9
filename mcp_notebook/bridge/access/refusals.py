"""The log of refused requests and connections: one line each, with a limit per minute.

Runs on the bridge's event loop. The gate and the connections below it (`transports.connections`)
write here. The lines go to stderr, which a background bridge writes to its log.
"""

import logging
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

MAX_REFUSALS_LOGGED = 20
"""Refusals in a minute with a line of their own; the others are only counted."""
_MINUTE = 60.0


class RefusalLog:
    """The log of one endpoint.

    Its lines quote nothing that a client sends: no token, and no escape sequence for a terminal.

    Args:
        tell: Called with the address, the reason and the number of refusals for each line.
        clock: Returns monotonic seconds.
    """

    def __init__(
        self,
        tell: Callable[[str, str, int], object] = lambda _address, _reason, _count: None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._began = -_MINUTE
        self._count = 0
        """Refusals since `_began`."""

    def note(self, client: tuple[str, int] | None, reason: str) -> None:
        """Write a line about a refusal, or only count it."""
        now = self._clock()
        if now - self._began >= _MINUTE:
            uncounted = self._count - MAX_REFUSALS_LOGGED
            if uncounted > 0:
                logger.warning("refused %d more requests before that", uncounted)
                self._tell("several addresses", "too many to have a line each", uncounted)
            self._began, self._count = now, 0
        self._count += 1
        if self._count > MAX_REFUSALS_LOGGED:
            return
        host, port = client or ("an unknown address", 0)
        self._tell(f"{host} port {port}", reason, 1)
        last = self._count == MAX_REFUSALS_LOGGED
        logger.warning(
            "%s refused a request from %s port %d: %s%s",
            time.strftime("%Y-%m-%d %H:%M:%S"),
            host,
            port,
            reason,
            " (more in this minute are only counted)" if last else "",
        )
