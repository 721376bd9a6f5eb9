"""What is kept of what a call prints; that it is the call's own is tested in test_invoke."""

import threading
import tracemalloc
from types import SimpleNamespace

from IPython.core.displaypub import CapturingDisplayPublisher

from mcp_notebook.kernel.calls.capture import MAX_PRINTED, Capture
from mcp_notebook.kernel.calls.environment import CallEnvironment

LIMIT = 30


def size(capture):
    return sum(len(output.text) for output in capture.outputs)


def test_prints_are_kept_whole_and_in_order_while_there_is_room():
    capture = Capture()
    for text in ("one", "\n", "two"):
        capture.write(text)
    assert "".join(output.text for output in capture.outputs) == "one\ntwo"


def test_one_huge_print_is_bounded_as_many_small_ones_are():
    for texts in (["a" * 1_999_999 + "z"], ["a" * 1_000] * 1_999 + ["a" * 999 + "z"]):
        capture = Capture()
        for text in texts:
            capture.write(text)
        first, *_, last = capture.outputs
        assert size(capture) < 1.2 * MAX_PRINTED
        assert first.text.startswith("a")
        assert last.text.endswith("z")
        assert "900,000 characters dropped" in last.text


def test_what_is_dropped_of_a_long_print_is_not_copied():
    capture, text = Capture(), "a" * 20_000_000
    tracemalloc.start()
    capture.write(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


def test_empty_prints_take_no_memory():
    capture = Capture()
    for _ in range(10):
        capture.write("")
    assert capture.outputs == ()


def test_no_call_goes_on_before_the_outputs_of_all_are_routed(shell, formatter, loop):
    began, others = threading.Event(), []

    class Shell(SimpleNamespace):
        """A shell that is slow to say where displays go."""

        @property
        def display_pub(self):
            if not began.is_set():
                began.set()
                others.append(has_acquired.wait(0.1))
            return publisher

    def acquire():
        began.wait(LIMIT)
        environment.acquire()
        has_acquired.set()

    publisher, has_acquired = CapturingDisplayPublisher(), threading.Event()
    parts = vars(shell)
    del parts["display_pub"]
    shell = Shell(**parts)
    environment = CallEnvironment(shell, loop, formatter.format)
    publish = publisher.publish
    thread = threading.Thread(target=acquire)
    thread.start()
    try:
        environment.acquire()
        thread.join()
        assert others == [False]
        environment.release()
        assert publisher.publish != publish
    finally:
        environment.release()
        environment.close()
    assert publisher.publish == publish
