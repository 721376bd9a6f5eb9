"""An interrupt raises in the code that it is meant for, and nowhere else."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcp_notebook.kernel.safe.interrupter import (
    REPEAT_AFTER,
    AsyncInterrupter,
    Shield,
    SignalInterrupter,
    enter,
    raise_in,
)

ROUNDS = int(os.environ.get("INTERRUPT_ROUNDS", "300" if os.environ.get("CI") else "100"))
LIMIT = 30


class Stop(BaseException):
    pass


class by_signal:  # noqa: N801 - names a way
    """An interrupter of the main thread."""

    def __enter__(self):
        self.interrupter = SignalInterrupter(Stop, signal.SIGURG)
        assert self.interrupter.install()
        return self.interrupter

    def __exit__(self, *exc):
        self.interrupter.remove()


class by_exception:  # noqa: N801 - names a way
    """An interrupter of any thread."""

    def __enter__(self):
        self.interrupter = AsyncInterrupter(Stop)
        return self.interrupter

    def __exit__(self, *exc):
        self.interrupter.remove()


def on_main(function):
    return function()


def in_thread(function):
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function).result(10 * LIMIT)


WAYS = pytest.mark.parametrize(
    ("way", "where"), [(by_signal, on_main), (by_exception, on_main), (by_exception, in_thread)]
)


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "done"


def interrupt_from_elsewhere(interrupter, when=lambda: None):
    """Interrupt as soon as `when` returns; return the thread that does."""

    def run():
        when()
        interrupter.interrupt()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@WAYS
def test_open_code_is_interrupted(way, where):
    def run():
        with way() as interrupter:
            began = threading.Event()
            thread = interrupt_from_elsewhere(interrupter, began.wait)

            def code():
                began.set()
                return spin(LIMIT)

            try:
                return interrupter.run(code)
            except Stop:
                return "stopped"
            finally:
                thread.join()

    assert where(run) == "stopped"


@WAYS
def test_code_that_is_not_open_is_not_interrupted(way, where):
    def run():
        with way() as interrupter:
            sent = []
            for prepare in (lambda: None, lambda: interrupter.run(spin, 0)):
                prepare()
                thread = threading.Thread(target=lambda: sent.append(interrupter.interrupt()))
                thread.start()
                thread.join()
                spin(0.001)
            return sent

    assert where(run) == [False, False]


def test_code_is_not_declared_closed_while_an_interrupt_is_sent():
    sending, closed, was_closed = threading.Event(), threading.Event(), []

    class Slow(AsyncInterrupter):
        def _send(self):
            sending.set()
            was_closed.append(closed.wait(0.1))
            return True

    interrupter = Slow(Stop)
    interrupter.open()
    thread = interrupt_from_elsewhere(interrupter)
    assert sending.wait(LIMIT)
    interrupter.close()
    closed.set()
    thread.join()
    assert was_closed == [False]
    assert interrupter.interrupt() is False


def test_an_interrupt_that_arrives_while_the_code_is_closed_is_reported_and_not_raised():
    class Late(AsyncInterrupter):
        arrives = True

        def _take_back(self):
            if self.arrives:
                self.arrives = False
                raise Stop
            super()._take_back()

    interrupter = Late(Stop)
    interrupter.open()
    assert interrupter.close() is True
    assert interrupter.close() is False


def test_a_signal_ends_a_sleep():
    with by_signal() as interrupter:
        began, ended = threading.Event(), threading.Event()

        def interrupt():
            began.wait()
            interrupter.interrupt()
            # One that comes just before the sleep ends nothing: whoever stops code asks again.
            while not ended.wait(REPEAT_AFTER):
                interrupter.interrupt()

        def code():
            began.set()
            time.sleep(LIMIT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(Stop):
            interrupter.run(code)
        ended.set()
        thread.join()


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be held back")
def test_a_signal_that_is_not_seen_is_sent_again_but_not_at_once():
    def interrupt():
        thread = threading.Thread(target=lambda: sent.append(interrupter.interrupt()))
        thread.start()
        thread.join()

    def code():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG})  # as if Python did not look
        try:
            interrupt()
            interrupt()
            time.sleep(REPEAT_AFTER)
            interrupt()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGURG})

    sent = []
    with by_signal() as interrupter, pytest.raises(Stop):
        interrupter.run(code)
    assert sent == [True, False, True]


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be held back")
def test_the_old_handler_is_not_put_back_before_a_signal_that_was_sent_has_come(monkeypatch):
    heard = []
    before = signal.signal(signal.SIGURG, lambda *_: heard.append("too late"))
    interrupter = SignalInterrupter(Stop, signal.SIGURG)
    interrupter.install()

    def let_come(_seconds):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGURG})

    def code():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG})
        interrupt_from_elsewhere(interrupter).join()

    try:
        interrupter.run(code)
        monkeypatch.setattr(time, "sleep", let_come)
        interrupter.remove()
    finally:
        let_come(0)
        signal.signal(signal.SIGURG, before)
    assert heard == []
    assert interrupter.signal_count == 1


def test_the_handler_is_ours_only_from_install_to_remove():
    before = signal.getsignal(signal.SIGURG)
    with by_signal():
        assert signal.getsignal(signal.SIGURG) is not before
        signal.signal(signal.SIGURG, signal.SIG_IGN)  # the code's own goes with it
    assert signal.getsignal(signal.SIGURG) is before


def test_a_foreign_signal_goes_to_the_previous_handler():
    heard = []
    before = signal.signal(signal.SIGURG, lambda *_: heard.append("before"))
    try:
        with by_signal() as interrupter:
            interrupter.run(signal.raise_signal, signal.SIGURG)
            assert interrupter.signal_count == 0
        assert heard == ["before"]
    finally:
        signal.signal(signal.SIGURG, before)


def test_a_shared_signal_interrupts_from_any_sender():
    interrupter = SignalInterrupter(Stop, signal.SIGURG, takes_foreign=True)
    interrupter.install()
    try:
        signal.raise_signal(signal.SIGURG)  # not open: noted
        assert interrupter.signal_count == 1
        with pytest.raises(Stop):
            interrupter.run(signal.raise_signal, signal.SIGURG)
    finally:
        interrupter.remove()


def test_code_that_has_put_the_default_in_place_is_not_signalled():
    with by_signal() as interrupter:
        sent = []

        def code():
            signal.signal(signal.SIGURG, signal.SIG_DFL)
            thread = threading.Thread(target=lambda: sent.append(interrupter.interrupt()))
            thread.start()
            thread.join()

        interrupter.run(code)
        assert sent == [False]


def test_outside_of_the_main_thread_no_signal_can_be_taken():
    assert in_thread(lambda: SignalInterrupter(Stop, signal.SIGURG).install()) is False


def test_a_pending_exception_of_other_code_is_not_dropped():
    def run():
        first, second = AsyncInterrupter(Stop), AsyncInterrupter(KeyError)
        ident, ready = threading.get_ident(), threading.Event()
        thread = threading.Thread(target=lambda: (raise_in(ident, Stop), ready.set()))
        first.open()
        try:
            thread.start()
            while not ready.is_set():
                second.open()
                second.close()
            spin(LIMIT)
        except Stop:
            return "stopped"
        finally:
            first.close()
            thread.join()

    assert in_thread(run) == "stopped"


def count_rounds(has_seen_all):
    """Count the rounds; on a busy machine more, until each way to end was seen."""
    for number in range(30 * ROUNDS):
        if number >= ROUNDS and has_seen_all():
            return
        yield number


def start_together(ready, seconds):
    """Spin as soon as the other thread is there, too."""
    ready.wait(LIMIT)
    return spin(seconds)


@WAYS
@pytest.mark.usefixtures("often_switched")
def test_interrupts_at_random_moments_hit_nothing_else(way, where):
    def run():
        chance = random.Random(11)
        ends = Counter()
        for number in count_rounds(lambda: ends["stopped"] and ends["done"]):
            length = chance.uniform(0, 0.0004)
            ready = threading.Event()
            if number % 2:
                ready.set()  # no waiting: the interrupt may come before the code is open, too
            with way() as interrupter:
                delay = chance.uniform(0, 0.0005)
                thread = interrupt_from_elsewhere(
                    interrupter, lambda ready=ready, delay=delay: (ready.set(), spin(delay))
                )
                try:
                    ends[interrupter.run(start_together, ready, length)] += 1
                except Stop:
                    ends["stopped"] += 1
                spin(chance.uniform(0, 0.0003))  # what came here would end the test
            spin(0.0001)
            thread.join()
        return ends

    ends = where(run)
    assert ends["stopped"] > 0
    assert ends["done"] > 0
    assert ends["stopped"] + ends["done"] == ends.total() >= ROUNDS


AFTERWARDS = """
import sys, threading, time
from mcp_notebook.kernel.safe.interrupter import AsyncInterrupter

class Stop(BaseException):
    pass

def work():
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        pass

interrupter = AsyncInterrupter(Stop)
thread = threading.Timer(0.05, interrupter.interrupt)
thread.start()
try:
    interrupter.run(work)
except Stop:
    print("stopped")
thread.join()
sys.settrace(lambda *_: None)  # as debuggers do
(lambda: None)()
sys.settrace(None)
print("traced")
"""


def test_code_can_be_traced_after_an_interrupt():
    """Python up to 3.12 goes round in circles there if an exception was taken back."""
    done = subprocess.run(
        [sys.executable, "-c", AFTERWARDS],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.stdout.split() == ["stopped", "traced"], done.stderr


# -- shields ---------------------------------------------------------------------------------------


def interrupt_and_wait(interrupter):
    """Have another thread interrupt this one, and give that the time to be raised."""
    interrupt_from_elsewhere(interrupter).join()
    spin(0.001)


@WAYS
def test_an_interrupt_within_a_shield_is_raised_at_its_end(way, where):
    def run():
        steps = []

        def code():
            with Shield():
                interrupt_and_wait(interrupter)
                steps.append("still shielded")
            steps.append("too late")

        with way() as interrupter, pytest.raises(Stop):
            interrupter.run(code)
        return steps

    assert where(run) == ["still shielded"]


@WAYS
def test_code_within_a_shield_may_be_interrupted_and_what_follows_is_not(way, where):
    def run():
        steps = []

        def code():
            with Shield() as shield:
                try:
                    interrupt_and_wait(interrupter)
                    shield.run(steps.append, "not reached")
                finally:
                    spin(0.001)
                    steps.append("released")

        with way() as interrupter, pytest.raises(Stop):
            interrupter.run(code)
        return steps

    assert where(run) == ["released"]


@WAYS
def test_a_shield_outside_of_interruptible_code_does_nothing(way, where):
    def run():
        with way() as interrupter, Shield() as shield:
            interrupt_and_wait(interrupter)
            return shield.run(lambda: "ran")

    assert where(run) == "ran"


@WAYS
@pytest.mark.usefixtures("often_switched")
def test_what_a_shield_acquires_is_released_at_whichever_moment_an_interrupt_comes(way, where):
    def run():
        chance, held, ends = random.Random(5), [], Counter()

        def code(ready, length):
            ready.wait(LIMIT)
            with Shield() as shield:
                spin(length)
                held.append("resource")
                try:
                    shield.run(spin, length)
                finally:
                    spin(length)
                    held.pop()

        for _ in count_rounds(lambda: ends["stopped"]):
            ready = threading.Event()
            with way() as interrupter:
                delay = chance.uniform(0, 0.001)
                thread = interrupt_from_elsewhere(
                    interrupter, lambda ready=ready, delay=delay: (ready.set(), spin(delay))
                )
                try:
                    interrupter.run(code, ready, chance.uniform(0, 0.0003))
                    ends["ran"] += 1
                except Stop:
                    ends["stopped"] += 1
                assert held == []
            thread.join()
        return ends

    ends = where(run)
    assert ends["stopped"]
    assert ends.total() >= ROUNDS


def test_what_an_interrupt_kept_from_its_end_ends_with_the_code_around_it():
    removed = []

    class Inner:
        def remove(self):
            removed.append("inner")

    with by_exception() as interrupter:
        interrupter.open()
        enter(Inner())
        interrupter.close()
        assert removed == []
    assert removed == ["inner"]
