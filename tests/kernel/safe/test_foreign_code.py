"""Values whose own code takes for ever are stopped, and nothing else is."""

# What the linter finds wrong with these classes is what they are for.
# ruff: noqa: ARG002, BLE001, PLE0307, PT012, PT017

import asyncio
import contextlib
import gc
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest
from contents import only_text
from IPython.core.formatters import DisplayFormatter

from mcp_notebook.kernel.calls.interrupts import InterruptGate
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.safe.foreign_code import DeadlineExceeded, deadline, guard
from mcp_notebook.settings.settings import Settings

SECONDS = 0.05
LONG = 5
ROUNDS = int(os.environ.get("INTERRUPT_ROUNDS", "300" if os.environ.get("CI") else "100"))


class Loops:
    def __repr__(self):
        while True:
            pass


class Naps:
    def __repr__(self):
        while True:
            time.sleep(0.001)


class LoopsInHtml:
    def _repr_html_(self):
        while True:
            pass


class LoopsInBundle:
    def _repr_mimebundle_(self, include=None, exclude=None):
        while True:
            pass


class LoopsInDisplay:
    def _ipython_display_(self):
        while True:
            pass


class LoopsAsMapping(dict):
    def __iter__(self):
        while True:
            pass


class CatchesOnce:
    def __repr__(self):
        try:
            while True:
                pass
        except BaseException:
            return "caught"


SLOW = [Loops, Naps, LoopsInHtml, LoopsInBundle, LoopsInDisplay]


def on_main(function):
    return function()


def in_thread(function):
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function).result(max(30, ROUNDS / 50))


@pytest.fixture(autouse=True)
def without_collections():
    """A time limit that ends within hypothesis' hook of the garbage collector stops nothing."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(params=[on_main, in_thread])
def where(request):
    return request.param


@pytest.fixture
def converter():
    return Converter(DisplayFormatter().format, Settings(), seconds=SECONDS)


@pytest.mark.parametrize("kind", SLOW)
def test_an_object_that_never_ends_is_named(where, converter, kind):
    text = only_text(where(lambda: converter.make_result(kind(), ())))
    assert text == f"[an object of type {kind.__name__} whose repr took longer than 0.05 s]"


def test_a_collection_that_never_ends_is_named(where, converter):
    text = only_text(where(lambda: converter.make_result(LoopsAsMapping(), ())))
    assert text == "[an object of type LoopsAsMapping whose repr took longer than 0.05 s]"


class NeverSaysItsClass:
    @property
    def __class__(self):
        while True:
            pass


@pytest.mark.parametrize("wrap", [lambda it: it, lambda it: [1, it], lambda it: {"a": (it,)}])
def test_an_object_that_never_says_its_class_is_a_sentence(where, converter, wrap):
    text = only_text(where(lambda: converter.make_result(wrap(NeverSaysItsClass()), ())))
    assert "whose repr took longer than 0.05 s]" in text


def test_a_repr_that_sleeps_is_woken_on_the_main_thread(converter):
    class Sleeps:
        def __repr__(self):
            time.sleep(1_000)

    assert "Sleeps whose repr took longer" in only_text(converter.make_result(Sleeps(), ()))


def test_the_rest_of_the_result_is_shown(where, converter):
    text = only_text(where(lambda: converter.make_result([1, Loops(), "two"], ())))
    assert text == '[1,"[an object of type Loops whose repr took longer than 0.05 s]","two"]'


def test_all_objects_of_one_result_share_the_time(where, converter):
    began = time.process_time()
    text = only_text(where(lambda: converter.make_result([Loops()] * 1_000, ())))
    assert time.process_time() - began < 1_000 * SECONDS / 2
    assert text.count("whose repr took longer") == 1
    assert "that is not shown: the objects before it used up the 0.05 s" in text


def test_the_next_result_has_its_own_time(where, converter):
    def twice():
        converter.make_result(Loops(), ())
        return converter.make_result(frozenset({1j}), ())

    assert only_text(where(twice)) == '["1j"]'


def test_cells_of_a_table_share_the_time(where, converter):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": ["x", Loops()], "b": [Loops(), 2]})
    text = only_text(where(lambda: converter.make_result(frame, ())))
    assert text.count("an object of type Loops") == 2
    assert "\nx,[an object" in text


def test_an_exception_whose_message_never_ends_is_told(where, converter):
    class Slow(Exception):
        def __str__(self):
            while True:
                pass

    result = where(lambda: converter.make_failure(Slow(), ()))
    assert result.is_error
    assert "Slow" in only_text(result)


def test_one_that_catches_it_once_says_what_it_likes(where, converter):
    assert only_text(where(lambda: converter.make_result(CatchesOnce(), ()))) == "caught"


def test_one_that_goes_on_is_stopped_again(where, converter):
    class GoesOn:
        def __repr__(self):
            for _ in range(2):
                with contextlib.suppress(BaseException):
                    spin(LONG)
            return spin(LONG)

    assert "GoesOn whose repr" in only_text(where(lambda: converter.make_result(GoesOn(), ())))


def test_a_result_within_a_repr_shares_the_time(where, converter):
    class Nested:
        def __repr__(self):
            return only_text(converter.make_result(Loops(), ()))

    # On a busy machine, the time is over before the inner result is begun.
    said = only_text(where(lambda: converter.make_result(Nested(), ())))
    assert re.search(r"an object of type Loops (whose repr|that is not shown: .* took)", said)


class LoopsLong:
    """Takes far longer than it may, but not for ever: what is not stopped is done some time."""

    def __init__(self, first=None):
        self._first = first

    def __repr__(self):
        if self._first is not None:
            guard(repr, self._first)
        return spin(LONG)


def test_what_comes_after_a_piece_within_a_piece_is_still_bounded(where):
    def convert():
        with deadline(SECONDS), pytest.raises(DeadlineExceeded):
            guard(repr, LoopsLong(first=Counter("a")))

    where(convert)


def test_a_result_in_a_thread_that_got_a_copy_of_the_context_has_its_own_time():
    def convert():
        with deadline(SECONDS), pytest.raises(DeadlineExceeded):
            guard(repr, LoopsLong())

    with deadline(SECONDS), ThreadPoolExecutor(1) as thread:
        thread.submit(copy_context().run, convert).result()


def test_an_interrupt_stops_the_call_and_not_only_the_repr(converter):
    began = threading.Event()

    class Waits:
        def __repr__(self):
            began.set()
            while True:
                time.sleep(0.001)

    patient = Converter(DisplayFormatter().format, Settings(), seconds=60)
    gate = InterruptGate()

    def interrupt():
        began.wait(30)
        gate.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt), gate:
        gate.open()
        try:
            patient.make_result([Waits()], ())
        finally:
            gate.close()
    thread.join()


def test_the_handler_of_the_signal_is_put_back(converter):
    before = signal.getsignal(signal.SIGURG)
    converter.make_result(Loops(), ())
    assert signal.getsignal(signal.SIGURG) is before


def test_plain_values_start_no_thread(where, converter, monkeypatch):
    def refuse(_self):
        raise AssertionError("a thread")

    numpy = pytest.importorskip("numpy")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.5], "b": ["x"], "c": pandas.Timestamp("2026-01-01")})

    def convert():
        monkeypatch.setattr(threading.Thread, "start", refuse)
        for value in ("a", 1, 1.5, [1, ["a"]], {"a": {1}}, numpy.float64(1), frame):
            assert "AssertionError" not in only_text(converter.make_result(value, ()))
        monkeypatch.undo()

    where(convert)


def test_without_threads_the_time_is_not_bounded(monkeypatch, converter):
    def refuse(_self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert only_text(converter.make_result(frozenset({1j}), ())) == '["1j"]'


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "done"


@pytest.mark.usefixtures("often_switched")
def test_what_comes_after_is_never_hit(where):
    """Pieces that end at random moments around the end of their time."""

    def many():
        source = random.Random(7)
        ends = Counter()
        for number in range(ROUNDS):
            seconds = source.uniform(0.0003, 0.001)
            length = seconds + source.uniform(-0.0001, 0.0003)
            if number % 10 == 0:
                length = 60  # long enough for a watch that a busy machine keeps waiting
            try:
                with deadline(seconds):
                    ends[guard(lambda given: spin(given[0]), [length])] += 1
                    spin(source.uniform(0, 0.0001))  # our own code, after the piece
            except DeadlineExceeded as error:
                assert str(error).startswith("whose repr took longer")  # it was in the piece
                ends["stopped"] += 1
            spin(0.0001)  # the user's next cell: what came here would end the test
        return ends

    ends = where(many)
    assert ends["stopped"] > 0
    assert ends["done"] > 0


def _raise(error):
    raise error


def test_what_the_code_returns_is_returned():
    assert guard(lambda: "42", recover=str) == "42"


@pytest.mark.parametrize("kind", [ValueError, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_whatever_the_code_raises_is_recovered_from(kind):
    error = kind("no")
    assert guard(lambda: _raise(error), recover=lambda caught: caught) is error


def test_the_interrupt_that_stops_a_call_goes_on():
    with pytest.raises(KeyboardInterrupt):
        guard(lambda: _raise(KeyboardInterrupt()), recover=str)
