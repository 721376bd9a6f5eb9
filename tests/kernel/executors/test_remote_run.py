"""What a worker does: here on threads of the test's own process."""

# ruff: noqa: T201 - what is printed is what is tested

import asyncio
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier

import cloudpickle
import pytest

from mcp_notebook.kernel.executors import remote_run
from mcp_notebook.kernel.executors.remote_run import run_remotely


def run(function, **arguments):
    printed, value, error = run_remotely(cloudpickle.dumps((function, arguments)))
    return printed, pickle.loads(value), error


def test_prints_and_the_value_come_back():
    def shout(text):
        print(text.upper())
        print("careful", file=sys.stderr)
        return len(text)

    assert run(shout, text="abc") == ("ABC\ncareful\n", 3, None)


def test_prints_come_back_with_what_was_raised():
    def fail():
        print("before")
        raise LookupError("on purpose")

    printed, error, text = run(fail)
    assert printed == "before\n"
    assert isinstance(error, LookupError)
    assert text.startswith("Traceback")
    assert text.endswith("LookupError: on purpose\n")
    assert "run_remotely" not in text


class Odd(Exception):
    """Holds what stays where it is."""

    def __reduce__(self):
        raise TypeError("not to be pickled")


def test_an_exception_that_cannot_be_sent_is_told():
    def fail():
        raise Odd("one")

    _, error, text = run(fail)
    assert repr(error) == "RuntimeError('Odd: one')"
    assert text.endswith("Odd: one\n")


def test_a_value_that_cannot_be_sent_is_named():
    def give():
        import threading  # noqa: PLC0415 - as on a worker

        return threading.Lock()

    _, error, _ = run(give)
    assert str(error).startswith("a value of type lock cannot be sent from the worker: ")


def count_up():
    print("counting")
    yield 1
    yield 2


async def count_up_later():
    for number in count_up():
        await asyncio.sleep(0)
        yield number


async def sum_up():
    await asyncio.sleep(0)
    print("counting")
    return 3


async def give_generator():
    return count_up()


VALUES = {count_up: [1, 2], count_up_later: [1, 2], sum_up: 3, give_generator: [1, 2]}


@pytest.mark.parametrize("function", VALUES, ids=lambda function: function.__name__)
@pytest.mark.parametrize("is_loop_running", [False, True])
def test_coroutines_are_awaited_and_items_taken_on_the_worker(function, is_loop_running):
    async def run_on_loop():
        return run(function)

    outcome = asyncio.run(run_on_loop()) if is_loop_running else run(function)
    assert outcome == ("counting\n", VALUES[function], None)


def test_a_coroutine_that_fails_does_so_as_a_function():
    async def fail():
        print("before")
        raise LookupError("on purpose")

    printed, error, text = run(fail)
    assert (printed, repr(error)) == ("before\n", "LookupError('on purpose')")
    assert ", in fail" in text


@pytest.mark.parametrize("is_async", [False, True])
def test_a_generator_without_an_end_ends(monkeypatch, is_async):
    monkeypatch.setattr(remote_run, "MAX_ITEMS", 3)

    async def count_for_ever():
        for number in count():
            yield number

    _, items, _ = run(count_for_ever) if is_async else run(lambda: map(abs, count()))
    assert items == [0, 1, 2, "... only the first 3 items were taken ..."]


def test_a_function_that_the_worker_cannot_import_is_an_error_of_its_call(tmp_path, monkeypatch):
    (tmp_path / "of_the_notebook.py").write_text("def f():\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import of_the_notebook  # noqa: PLC0415

    pickled = cloudpickle.dumps((of_the_notebook.f, {}))
    monkeypatch.undo()
    del sys.modules["of_the_notebook"]
    _, value, _ = run_remotely(pickled)
    assert isinstance(pickle.loads(value), ModuleNotFoundError)


def test_a_flood_of_prints_is_cut(monkeypatch):
    monkeypatch.setattr(remote_run, "MAX_PRINTED", 10)
    printed, _, _ = run(lambda: print("x" * 25, end=""))
    assert printed == "x" * 10 + "\n[... 15 characters dropped ...]\n"


def test_functions_side_by_side_print_each_for_itself(capsys):
    barrier = Barrier(3)

    def speak(name):
        barrier.wait(20)
        print(name)
        barrier.wait(20)
        return name

    # Not by value: the barrier is of this process.
    monkey = sys.modules[__name__]
    monkey.speak = speak
    try:
        before = sys.stdout
        with ThreadPoolExecutor(2) as threads:
            pickled = [pickle.dumps((_speak, {"name": name})) for name in ("a", "b")]
            futures = [threads.submit(run_remotely, item) for item in pickled]
            barrier.wait(20)
            print("here")
            barrier.wait(20)
            assert [future.result()[0] for future in futures] == ["a\n", "b\n"]
        print("and here")
    finally:
        del monkey.speak
    assert capsys.readouterr().out == "here\nand here\n"
    while isinstance(sys.stdout, remote_run.ThreadStream):
        assert sys.stdout.thread is None
        sys.stdout = sys.stdout.before
    assert sys.stdout is before


def _speak(name):
    return sys.modules[__name__].speak(name)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_nothing_that_a_function_raises_ends_the_worker(error):
    def fail():
        raise error

    assert type(run(fail)[1]) is type(error)
