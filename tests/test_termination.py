import signal
import sys

import pytest

from mcp_notebook.termination import list_termination_signals

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


@pytest.mark.usefixtures("without_nohup")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_is_ignored_from_the_start_ends_nothing(number):
    assert number in list_termination_signals()
    handler = signal.signal(number, signal.SIG_IGN)
    try:
        assert number not in list_termination_signals()
    finally:
        signal.signal(number, handler)
