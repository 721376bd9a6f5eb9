"""What a worker does: here on threads of the test's own process."""

# ruff: noqa: T201 - what is printed is what is tested

import asyncio
import pickle
import subprocess
import sys
import threading
from itertools import count

import cloudpickle
import pytest

from mcp_notebook.kernel.executors.remote_run import MAX_ITEMS, run_remotely


@pytest.fixture
def pyplot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    yield pyplot
    pyplot.close("all")


def run(function, **arguments):
    outputs, pickled, error = run_remotely(cloudpickle.dumps((function, arguments)))
    value, _figures = pickle.loads(pickled)
    return "".join(outputs), value, error


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

    _, error, text = run(give)
    assert str(error).startswith("a value of type lock cannot be pickled (")
    assert text == ""


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


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_generator_yielded_before_it_failed_is_displayed(is_async):
    def fail():
        yield "first"
        raise ValueError("midway")

    async def fail_later():
        yield "first"
        raise ValueError("midway")

    function = fail_later if is_async else fail
    [(kind, _, text)], _, traceback = run_remotely(cloudpickle.dumps((function, {})))
    assert (kind, text) == ("display", "['first']\n")
    assert "ValueError: midway" in traceback


def test_a_coroutine_that_fails_does_so_as_a_function():
    async def fail():
        print("before")
        raise LookupError("on purpose")

    printed, error, text = run(fail)
    assert (printed, repr(error)) == ("before\n", "LookupError('on purpose')")
    assert ", in fail" in text


@pytest.mark.parametrize("is_async", [False, True])
def test_a_generator_without_an_end_ends(is_async):
    async def count_for_ever():
        for number in count():
            yield number

    _, items, _ = run(count_for_ever) if is_async else run(lambda: map(abs, count()))
    assert items == [*range(MAX_ITEMS), "... only the first 100,000 items were taken ..."]


def test_a_function_that_the_worker_cannot_import_is_an_error_of_its_call(tmp_path, monkeypatch):
    (tmp_path / "of_the_notebook.py").write_text("def f():\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import of_the_notebook  # noqa: PLC0415

    pickled = cloudpickle.dumps((of_the_notebook.f, {}))
    monkeypatch.undo()
    del sys.modules["of_the_notebook"]
    _, pickled_error, _ = run_remotely(pickled)
    error, _figures = pickle.loads(pickled_error)
    assert isinstance(error, ModuleNotFoundError)


def test_open_figures_come_with_the_value_that_may_be_one_of_them(pyplot):
    before = pyplot.figure()

    def plot():
        first = pyplot.figure()
        pyplot.figure()
        return first

    outputs, pickled, _ = run_remotely(cloudpickle.dumps((plot, {})))
    assert pyplot.get_fignums() == [before.number]
    value, figures = pickle.loads(pickled)
    assert outputs == []
    assert value is figures[0]
    assert len(pyplot.get_fignums()) == 3


def test_a_figure_that_cannot_be_sent_is_told(pyplot):
    def plot():
        pyplot.figure().lock = threading.Lock()
        return 1

    (shown,), pickled, _ = run_remotely(cloudpickle.dumps((plot, {})))
    assert pickle.loads(pickled) == (1, [])
    assert shown == "[The open figures cannot be sent from the worker.]\n"
    assert pyplot.get_fignums() == []


@pytest.mark.slow
def test_the_module_that_shows_figures_is_imported_before_the_function_runs():
    code = """
import pickle, sys
import cloudpickle
from mcp_notebook.kernel.executors.remote_run import run_remotely
def plot():
    import matplotlib.pyplot as plt
    plt.plot([1])
    plt.show()
assert "matplotlib.pyplot" not in sys.modules
outputs, pickled, error = run_remotely(cloudpickle.dumps((plot, {})))
assert error is None, error
(function, _, _), = outputs
print(function, pickle.loads(pickled))
"""
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert run.stdout == "display (None, [])\n"
