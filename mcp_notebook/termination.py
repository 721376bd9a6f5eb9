"""Which signals ask a command to end: SIGTERM, and SIGHUP when its terminal has been closed.

Pure data for the command line and the bridge, which clean up before they end. SIGINT is not among
them: it ends a command with an exit code of its own.
"""

import signal


def list_termination_signals() -> list[signal.Signals]:
    """Return the signals that end this process, without one that its starter wants ignored.

    ``nohup`` ignores SIGHUP so that what it starts outlives the terminal. Windows has no SIGHUP.
    """
    names = ("SIGTERM", "SIGHUP")
    present = [signal.Signals[name] for name in names if name in signal.Signals.__members__]
    return [number for number in present if signal.getsignal(number) is not signal.SIG_IGN]
