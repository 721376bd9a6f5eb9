"""The signals that terminate a command: SIGTERM, and SIGHUP when its terminal is closed.

For the command line and the bridge, which clean up before they end. SIGINT is not included: it has
an exit status of its own.
"""

import signal


def list_termination_signals() -> list[signal.Signals]:
    """Return the signals that terminate this process, except ignored ones.

    ``nohup`` ignores SIGHUP so that its command outlives the terminal. Windows has no SIGHUP.
    """
    names = ("SIGTERM", "SIGHUP")
    present = [signal.Signals[name] for name in names if name in signal.Signals.__members__]
    return [number for number in present if signal.getsignal(number) is not signal.SIG_IGN]
