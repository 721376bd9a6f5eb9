"""The signals that terminate a command: SIGTERM, and SIGHUP when its terminal is closed.

For the command line and the bridge, which clean up before they end. SIGINT is not included: it has
an exit status of its own.
"""

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager


def list_termination_signals() -> list[signal.Signals]:
    """Return the signals that terminate this process, except ignored ones.

    ``nohup`` ignores SIGHUP so that its command outlives the terminal. Windows has no SIGHUP, but
    SIGBREAK, when a console is closed.
    """
    names = ("SIGTERM", "SIGHUP", "SIGBREAK")
    present = [signal.Signals[name] for name in names if name in signal.Signals.__members__]
    return [number for number in present if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def handle_signals(
    numbers: Iterable[signal.Signals], handle: Callable[[signal.Signals], object]
) -> Iterator[None]:
    """Call a function on the running event loop for each of these signals, during the block."""
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        for number in numbers:
            try:
                loop.add_signal_handler(number, handle, number)
                stack.callback(loop.remove_signal_handler, number)
            except NotImplementedError:  # Windows, whose event loops handle no signals
                previous = signal.signal(number, _pass_to(loop, handle, number))
                stack.callback(signal.signal, number, previous)
        yield


def _pass_to(
    loop: asyncio.AbstractEventLoop,
    handle: Callable[[signal.Signals], object],
    number: signal.Signals,
) -> Callable[[int, object], None]:
    def run(_number: int, _frame: object) -> None:
        loop.call_soon_threadsafe(handle, number)

    return run
