"""Functions that an executor runs, without a kernel."""

import threading
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor

import pytest

from mcp_notebook.errors import Cancelled, ToolError
from mcp_notebook.kernel.calls.active_call import ActiveCall, StopRequest
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.executor_call import run_in_executor
from mcp_notebook.kernel.calls.outcome import CallConverter
from mcp_notebook.kernel.calls.stopping import Stopper
from mcp_notebook.kernel.executors.engine_finder import EngineFinder

LIMIT = 30
UNWANTED = StopRequest(CallState.CANCELLED, Cancelled("No longer wanted."))


def double(x: int) -> int:
    """Double."""
    return 2 * x


class NeverBegins(ThreadPoolExecutor):
    """Has no free worker, ever."""

    def __init__(self):
        super().__init__()
        self.asked = threading.Event()
        self.future = Future()

    def submit(self, *_args, **_kwargs):
        self.asked.set()
        return self.future


class Begun(Executor):
    """Has a worker that works until the test gives it a result."""

    def __init__(self):
        self.asked, self.refused = threading.Event(), threading.Event()
        self.future = Future()
        self.future.set_running_or_notify_cancel()
        self.future.cancel = self.refuse

    def refuse(self):
        self.refused.set()
        return False

    def submit(self, *_args, **_kwargs):
        self.asked.set()
        return self.future


class NeverSays(Executor):
    """Is of a kind whose futures are pending until they are done."""

    def submit(self, *_args, **_kwargs):
        return Future()


class Closed(Executor):
    """Takes nothing any more."""

    def submit(self, *_args, **_kwargs):
        raise RuntimeError("cannot schedule new futures after shutdown")


class Broken(Executor):
    """Its worker has ended."""

    def submit(self, *_args, **_kwargs):
        future = Future()
        future.set_exception(BrokenExecutor("a process was killed."))
        return future


@pytest.fixture
def replies():
    return []


@pytest.fixture
def call(queue, replies):
    call = ActiveCall("double", run="thread", reply=replies.append, lock=queue.lock)
    queue.add(call)
    call.begin(lambda: None)
    return call


@pytest.fixture
def stopper(queue, converter):
    return Stopper(queue, CallConverter(converter), None)


@pytest.fixture
def limited(queue, converter):
    return Stopper(queue, CallConverter(converter), 0.05)


def run(call, executor, stopper, function=double, **arguments):
    engine = EngineFinder().find(executor)
    return run_in_executor(call, stopper, function, engine, arguments)


def test_the_value_of_the_worker_is_returned(call, stopper):
    with ThreadPoolExecutor(1) as executor:
        assert run(call, executor, stopper, x=4) == 8
    assert call.state is CallState.RUNNING


def test_what_the_function_raises_is_raised(call, stopper):
    with ThreadPoolExecutor(1) as executor, pytest.raises(TypeError):
        run(call, executor, stopper, y=4)


def test_a_broken_executor_is_told_with_what_to_do(call, stopper):
    with pytest.raises(ToolError, match=r"a process was killed\. .* create a new one"):
        run(call, Broken(), stopper, x=4)


def test_an_executor_that_takes_nothing_is_told_with_its_reason(call, stopper):
    with pytest.raises(ToolError, match=r"'double' did not run the call: .* after shutdown\."):
        run(call, Closed(), stopper, x=4)


def test_where_futures_do_not_say_when_they_begin_the_time_runs_from_the_start(call, limited):
    with pytest.raises(KeyboardInterrupt):
        run(call, NeverSays(), limited, x=4)
    assert call.stop_request.state is CallState.TIMED_OUT
    assert call.waits_for == "its executor's result"


def test_no_keyword_of_an_executor_takes_an_argument_away(call, stopper):
    class Greedy(ThreadPoolExecutor):
        def submit(self, fn, *args, key=None, workers=None, **kwargs):  # noqa: ARG002
            return super().submit(fn, *args, **kwargs)

    def order(key: str, fn: str, workers: int = 1) -> tuple:
        """Order."""
        return key, fn, workers

    with Greedy(1) as executor:
        arguments = {"key": "k", "fn": "f", "workers": 4}
        assert run(call, executor, stopper, order, **arguments) == ("k", "f", 4)


def test_what_a_thread_of_a_pool_prints_is_of_its_call(call, stopper, environment):
    def speak() -> None:
        """Speak."""
        print("from the pool")  # noqa: T201

    with environment.surround(call.capture), ThreadPoolExecutor(1) as executor:
        run(call, executor, stopper, speak)
    (printed,) = [output.text for output in call.capture.outputs if output.text.strip()]
    assert printed.strip() == "from the pool"


def test_a_call_without_a_worker_waits_and_is_withdrawn_when_it_has_to_stop(call, stopper):
    executor = NeverBegins()
    with ThreadPoolExecutor(1) as threads:
        ended = threads.submit(run, call, executor, stopper, x=4)
        assert executor.asked.wait(LIMIT)
        while call.state is not CallState.WAITING:
            pass
        stopper.stop(call, UNWANTED)
        assert isinstance(ended.exception(LIMIT), KeyboardInterrupt)
    assert executor.future.cancelled()


def test_a_worker_that_has_begun_goes_on_and_the_call_is_answered(call, stopper, replies):
    executor = Begun()
    with ThreadPoolExecutor(1) as threads:
        ended = threads.submit(run, call, executor, stopper, x=4)
        assert executor.asked.wait(LIMIT)
        stopper.stop(call, UNWANTED)
        assert executor.refused.wait(LIMIT)
        assert len(replies) == 1
        assert not ended.done()
        executor.future.set_result(8)
        assert isinstance(ended.exception(LIMIT), KeyboardInterrupt)
    assert len(replies) == 1
