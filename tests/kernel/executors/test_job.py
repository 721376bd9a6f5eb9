"""What executors get, by what they pickle with; the executors themselves in a real kernel."""

import multiprocessing
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from live import Link, record_of, text_of

from mcp_notebook import mcp_tool
from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.executors.job import Job, reports_begin, sends_elsewhere

TOOLS = '''
from mcp_notebook import mcp_tool
SCALE = 2

class Odd(ValueError):
    pass

@mcp_tool(executor=pool)
def scale(key: int, workers: int = 1, priority: int = 0, retries: int = 0, fn: str = "") -> dict:
    """Scale."""
    print("on the worker")
    return {"key": key * SCALE, "workers": workers, "priority": priority, "fn": fn}

@mcp_tool(executor=pool)
def draw() -> float:
    """Draw."""
    import random
    return random.SystemRandom().random()

@mcp_tool(executor=pool)
def fail() -> None:
    """Fail."""
    print("before")
    raise Odd("on purpose")

@mcp_tool(executor=pool)
def hold() -> str:
    """Hold what cannot be sent."""
    return str(pool)

@mcp_tool(executor=pool)
async def wait() -> int:
    """Wait."""
    import asyncio
    await asyncio.sleep(0)
    print("on the worker")
    return SCALE

@mcp_tool(executor=pool, timeout=1)
def sleep() -> None:
    """Sleep."""
    import time
    time.sleep(3)
'''
PROCESSES = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context({method!r}))
"""
EXECUTORS = {
    "fork": PROCESSES.format(method="fork"),
    "spawn": PROCESSES.format(method="spawn"),
    "loky": "import loky\npool = loky.ProcessPoolExecutor(1)",
    "distributed": """
import logging
from distributed import Client, LocalCluster
cluster = LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None)
client = Client(cluster)
pool = client.get_executor()
""",
    "executorlib": """
from executorlib import SingleNodeExecutor
pool = SingleNodeExecutor(max_workers=1)
""",
    "ipyparallel": """
import ipyparallel
cluster = ipyparallel.Cluster(n=1)
client = cluster.start_and_connect_sync()
pool = client.load_balanced_view().executor
""",
}
ENDS = {
    "distributed": "client.shutdown()",
    "ipyparallel": "cluster.stop_cluster_sync()",
}


@pytest.fixture(
    scope="module",
    params=[
        "fork",
        pytest.param("spawn", marks=pytest.mark.slow),
        "loky",
        "distributed",
        pytest.param("executorlib", marks=pytest.mark.slow),
        pytest.param("ipyparallel", marks=pytest.mark.slow),
    ],
)
def kernel(request, shared_kernel):
    if request.param not in ("fork", "spawn"):
        pytest.importorskip(request.param)
    shared_kernel.ok(EXECUTORS[request.param])
    shared_kernel.ok(TOOLS)
    yield shared_kernel
    shared_kernel.ok(ENDS.get(request.param, "pool.shutdown(wait=False)"))


@pytest.fixture
def link(kernel):
    with Link(record_of(kernel)) as link:
        yield link


def test_a_function_of_a_cell_runs_with_the_variables_of_now_whatever_its_parameters(kernel, link):
    arguments = {"key": 3, "workers": 4, "priority": 5, "retries": 0, "fn": "f"}
    result = link.call("scale", **arguments)
    assert "on the worker" in text_of(result)
    assert result.structured == {"key": 6, "workers": 4, "priority": 5, "fn": "f"}
    kernel.ok("SCALE = 10")
    assert link.call("scale", key=3).structured["key"] == 30
    kernel.ok("SCALE = 2")


def test_equal_calls_are_two_calls(link):
    assert text_of(link.call("draw")) != text_of(link.call("draw"))


def test_an_exception_of_a_cell_comes_back_with_what_was_printed(link):
    result = link.call("fail")
    assert result.is_error
    text = text_of(result)
    assert text.startswith("before")
    assert "Odd: on purpose" in text
    assert ", in fail" in text
    assert "caused by:\n\nRemoteTraceback: \n" in text
    assert "mcp_notebook" not in text


def test_a_coroutine_is_awaited_on_the_worker(link):
    assert text_of(link.call("wait")) == "on the worker\n2"


def test_what_cannot_be_sent_is_one_sentence(kernel, link):
    text = text_of(link.call("hold"))
    assert text.startswith("The function of 'hold' cannot be sent to its executor: ")
    assert "Traceback" not in text
    output = kernel.ok("1")
    assert output.stdout + output.stderr == ""


def test_the_time_limit_holds(link):
    text = text_of(link.call("sleep"))
    assert text.startswith("The tool 'sleep' was stopped: it ran longer than 1 s")


@mcp_tool
def lock_user():
    """Use what cannot be pickled."""
    return LOCK


LOCK = threading.Lock()


class Other(Executor):
    """Somebody's own."""


@pytest.mark.parametrize(
    ("kind", "is_reporting", "is_elsewhere"),
    [(ThreadPoolExecutor, True, False), (ProcessPoolExecutor, True, True), (Other, False, False)],
)
def test_what_is_known_of_an_executor(kind, is_reporting, is_elsewhere):
    executor = kind()
    assert reports_begin(executor) is is_reporting
    assert sends_elsewhere(executor) is is_elsewhere


def test_the_pickle_needs_nothing_of_this_package_and_has_no_mark(tmp_path):
    code = """
from mcp_notebook import mcp_tool
from mcp_notebook.kernel.executors.job import Job
from concurrent.futures import ThreadPoolExecutor
import pickle, sys
@mcp_tool(executor=ThreadPoolExecutor(1))
def helper(): return "helped"
@mcp_tool(executor=ThreadPoolExecutor(1))
def tool(x): return x, helper()
pickle.dump(Job("tool", tool, {"x": 1}), open(sys.argv[1], "wb"))
"""
    job = tmp_path / "job"
    subprocess.run([sys.executable, "-c", code, str(job)], check=True)
    assert b"mcp_notebook.kernel.tools" not in job.read_bytes()
    code = """
import sys
sys.modules["mcp_notebook"] = None
import pickle
printed, value, error = pickle.load(open(sys.argv[1], "rb"))()
print(pickle.loads(value), error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code, str(job)], check=True, capture_output=True, text=True
    )
    assert run.stdout == "(1, 'helped') None\n"


def test_a_function_of_a_module_goes_by_its_name():
    job = Job("lock_user", lock_user, {})
    assert len(pickle.dumps(job)) < 20_000


def test_what_cannot_be_pickled_is_told_with_its_reason():
    job = Job("held", lambda: None, {"lock": threading.Lock()})
    with pytest.raises(ToolError, match=r"'held' cannot be sent to its executor: cannot pickle"):
        pickle.dumps(job)
    assert job.failure is not None


@pytest.mark.parametrize("package", ["concurrent.futures", "loky"])
def test_a_function_begins_when_its_worker_comes_to_it(tmp_path, package):
    futures = pytest.importorskip(package)
    # Not by fork, which Python warns of in a process with threads.
    context = {} if package == "loky" else {"mp_context": multiprocessing.get_context("spawn")}
    go = tmp_path / "go"

    def wait():
        while not go.exists():
            time.sleep(0.01)

    with futures.ProcessPoolExecutor(1, **context) as pool:
        first, second = Job("first", wait, {}), Job("second", wait, {})
        its_future, later_future = first.submit(pool), second.submit(pool)
        try:
            while not (first.has_begun(its_future) and later_future.running()):
                time.sleep(0.01)  # the test's own time limit ends this
            assert not second.has_begun(later_future)
        finally:
            go.touch()
        assert first.read(its_future.result(60), print) is None
        assert second.read(later_future.result(60), print) is None
        second.close()


def test_a_function_runs_also_where_no_temporary_file_can_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "removed"))
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        job = Job("double", lambda n: 2 * n, {"n": 4})
        assert job.read(job.submit(pool).result(60), print) == 8
        job.close()
