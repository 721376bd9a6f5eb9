"""An output that is shown anew from any thread, in a real kernel, as a frontend sees it."""

import pytest

SHOW = """
from IPython import get_ipython
from mcp_notebook.kernel.notebook.live_display import LiveDisplay
output = LiveDisplay(get_ipython())
output.show({"text/plain": "first"})
"""


@pytest.fixture
def output(kernel):
    """The message that showed it."""
    request = kernel.start(SHOW)
    shown = kernel.wait_for("display_data")
    kernel.finish(request)
    assert shown["data"] == {"text/plain": "first"}
    return shown


def test_an_output_is_shown_anew_by_a_thread_while_a_cell_runs(kernel, output):
    request = kernel.start(
        "import threading\nthread = threading.Thread(target=output.update, args=({'a/b': '2'},))\n"
        "thread.start(); thread.join(); print('after')"
    )
    updated = kernel.wait_for("update_display_data")
    assert updated["data"] == {"a/b": "2"}
    assert updated["transient"] == output["transient"]
    assert kernel.finish(request).stdout == "after\n"


def test_two_outputs_are_told_apart(kernel, output):
    request = kernel.start(SHOW)
    assert kernel.wait_for("display_data")["transient"] != output["transient"]
    kernel.finish(request)


def test_a_cell_that_captures_its_outputs_does_not_swallow_it(kernel, output):
    kernel.start("%%capture\noutput.update({'text/plain': 'seen'})")
    assert kernel.wait_for("update_display_data")["data"] == {"text/plain": "seen"}


def test_what_cannot_be_shown_harms_nobody(kernel, output):
    shown = kernel.ok("output.update({'text/plain': object()})\nprint('goes on')")
    assert "goes on" in shown.stdout
