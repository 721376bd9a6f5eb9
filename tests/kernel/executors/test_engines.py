"""Twelve tools of cells, run by each engine: all must behave as they do in the kernel."""

import importlib
import json
import multiprocessing
import os
import signal
import tempfile
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

import psutil
import pytest
from live import Link, live_kernel, record_of, text_of, until, wait_for_ends

from mcp_notebook.kernel.executors.engines import Engine
from mcp_notebook.kernel.executors.job import Job

TOOLS = '''
import sys, threading
from typing import Annotated
from pydantic import Field
from mcp_notebook import Context, mcp_tool
SCALE = 2

class Odd(ValueError):
    pass

def helper(number):
    return number + SCALE

@mcp_tool(executor=pool)
def scale(key: int, workers: int = 1, priority: int = 0, retries: int = 0, fn: str = "") -> dict:
    """Scale."""
    print("on the worker")
    return {"key": key * SCALE, "workers": workers, "priority": priority, "fn": fn}

@mcp_tool(executor=pool)
def use_helper(number: Annotated[int, Field(ge=1)], pure: bool = False) -> int:
    """Use a function of the notebook."""
    return helper(number)

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

LOCK = threading.Lock()

@mcp_tool(executor=pool)
def hold() -> str:
    """Hold what cannot be sent."""
    return str(LOCK)

@mcp_tool(executor=pool)
async def wait() -> int:
    """Wait."""
    import asyncio
    await asyncio.sleep(0)
    print("on the worker")
    return SCALE

@mcp_tool(executor=pool)
def count() -> list:
    """Count."""
    for number in range(3):
        print("counting", number)
        yield number

@mcp_tool(executor=pool)
def show() -> str:
    """Show."""
    from IPython.display import Markdown
    print("first")
    display(Markdown("# second"))
    print("third", file=sys.stderr)
    return "fourth"

@mcp_tool(executor=pool)
def plot() -> str:
    """Leave a figure open, after one that is shown."""
    import matplotlib.pyplot as plt
    plt.plot([1, 2])
    plt.show()
    print("between")
    plt.plot([1, 2, 3])
    return "plotted"

@mcp_tool(executor=pool)
def frame(rows: int):
    """Return a table."""
    import pandas as pd
    return pd.DataFrame({"row": range(rows)})

@mcp_tool(executor=pool)
def measure(until: str, ctx: Context) -> str:
    """Report progress until a file exists."""
    import pathlib, time
    ctx.progress(1, 2, "measuring")
    while not pathlib.Path(until).exists():
        time.sleep(0.01)
    ctx.log("measured")
    return ctx.tool

@mcp_tool(executor=pool, timeout=0.2)
def sleep() -> None:
    """Sleep."""
    import time
    time.sleep(2)
'''
PROCESSES = """
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context({method!r}))
"""
EXECUTORS = {
    "fork": PROCESSES.format(method="fork"),
    "spawn": PROCESSES.format(method="spawn"),
    "loky": "import loky\npool = loky.ProcessPoolExecutor(1)",
    "distributed": """
from distributed import Client, LocalCluster
cluster = LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None)
client = pool = Client(cluster)
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
REPORTING = {"distributed", "fork", "spawn", "loky"}
"""Engines with a channel from their workers."""


@pytest.fixture(
    scope="module",
    params=[
        "fork",
        pytest.param("spawn", marks=pytest.mark.slow),
        pytest.param("loky", marks=pytest.mark.needs("loky")),
        pytest.param("distributed", marks=pytest.mark.needs("distributed")),
        pytest.param("ipyparallel", marks=pytest.mark.slow),
    ],
)
def engine(request, shared_kernel):
    """Return the name of the engine whose executor is `pool` in the kernel."""
    if request.param == "ipyparallel":  # in no extra
        pytest.importorskip(request.param)
    shared_kernel.ok(EXECUTORS[request.param])
    shared_kernel.ok(TOOLS)
    yield request.param
    shared_kernel.ok(ENDS.get(request.param, "pool.shutdown(wait=False)"))


@pytest.fixture
def link(engine, shared_kernel):
    with Link(record_of(shared_kernel)) as link:
        yield link


def test_a_function_runs_with_the_variables_of_now_whatever_its_parameters(shared_kernel, link):
    arguments = {"key": 3, "workers": 4, "priority": 5, "retries": 0, "fn": "f"}
    result = link.call("scale", **arguments)
    assert "on the worker" in text_of(result)
    assert json.loads(result.content[-1].text) == {"key": 6, "workers": 4, "priority": 5, "fn": "f"}
    shared_kernel.ok("SCALE = 10")
    assert json.loads(link.call("scale", key=3).content[-1].text)["key"] == 30
    shared_kernel.ok("SCALE = 2")


def test_a_function_of_the_notebook_goes_along_with_its_variables(shared_kernel, link):
    assert text_of(link.call("use_helper", number=3, pure=True)) == "5"
    shared_kernel.ok("SCALE = 20")
    assert text_of(link.call("use_helper", number=3)) == "23"
    shared_kernel.ok("SCALE = 2")


def test_an_exception_comes_back_with_what_was_printed(link):
    result = link.call("fail")
    assert result.is_error
    text = text_of(result)
    assert text.startswith("before")
    assert text.count("Odd: on purpose") == 1
    assert "Traceback on its worker (most recent call last):\n  Cell In[" in text
    assert ", in fail\n" in text
    assert "caused by" not in text
    assert "mcp_notebook" not in text


def test_a_coroutine_is_awaited_on_the_worker(link):
    assert text_of(link.call("wait")) == "on the worker\n2"


def test_the_items_of_a_generator_are_taken_on_the_worker(link):
    result = link.call("count")
    assert text_of(result) == "counting 0\ncounting 1\ncounting 2\n[0,1,2]"


def test_what_cannot_be_sent_is_one_sentence_that_names_it(shared_kernel, link):
    text = text_of(link.call("hold"))
    assert text.startswith(
        "The function of 'hold' cannot be sent to its executor: the variable 'LOCK', of type lock,"
    )
    assert "Traceback" not in text
    output = shared_kernel.ok("1")
    assert output.stdout + output.stderr == ""


def test_progress_comes_while_the_function_runs(engine, link, tmp_path):
    until = tmp_path / "release"
    link.start("measure", progress=True, until=str(until))
    if engine in REPORTING:
        link.receive_until(lambda message: getattr(message, "message", None) == "measuring")
    until.touch()
    assert text_of(link.result()) == "measure"


class Other(Executor):
    """Somebody's own."""


@pytest.mark.parametrize(
    ("kind", "is_reporting", "is_elsewhere"),
    [(ThreadPoolExecutor, True, False), (ProcessPoolExecutor, True, True), (Other, False, False)],
)
def test_what_is_known_of_an_executor(kind, is_reporting, is_elsewhere):
    engine = Engine(kind())
    assert engine.reports_begin is is_reporting
    assert engine.sends_elsewhere is is_elsewhere


@pytest.mark.parametrize(
    "package", ["concurrent.futures", pytest.param("loky", marks=pytest.mark.needs("loky"))]
)
def test_a_function_begins_when_its_worker_comes_to_it(tmp_path, package):
    futures = importlib.import_module(package)
    # Not by fork, which Python warns of in a process with threads.
    context = {} if package == "loky" else {"mp_context": multiprocessing.get_context("spawn")}
    go = tmp_path / "go"

    def wait():
        while not go.exists():
            time.sleep(0.01)

    with futures.ProcessPoolExecutor(1, **context) as pool:
        engine = Engine(pool)
        first, second = (
            Job(name, wait, {}, channel=engine.open_channel()) for name in ("first", "second")
        )
        its_future, later_future = engine.submit(first), engine.submit(second)
        try:
            until(lambda: first.channel.receive() and later_future.running())
            assert second.channel.receive() == []
        finally:
            go.touch()
        assert first.read(its_future.result(60), None) is None
        assert second.read(later_future.result(60), None) is None
        for job in (first, second):
            job.channel.close()


def test_a_function_runs_also_where_no_temporary_file_can_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "removed"))
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        engine = Engine(pool)
        job = Job("double", lambda n: 2 * n, {"n": 4}, channel=engine.open_channel())
        assert job.channel is None
        assert job.read(engine.submit(job).result(60), None) == 8


@pytest.mark.slow
def test_a_call_for_which_ipyparallel_has_no_engine_says_so():
    ipyparallel = pytest.importorskip("ipyparallel")
    with ipyparallel.Cluster(n=1) as client:
        engine = Engine(client.load_balanced_view().executor)
        assert engine.describe_wait() == "its executor's result"
        client.shutdown(targets="all", block=True)
        until(lambda: not client.ids)
        assert engine.describe_wait() == "an engine of the ipyparallel cluster, which has none now,"


MEET = """
import loky, multiprocessing, os, pathlib, time
from concurrent.futures import ProcessPoolExecutor
from mcp_notebook import mcp_tool

def meet(folder: str) -> int:
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < 2:
        time.sleep(0.01)
    return os.getpid()

for method in {methods!r}:
    if method == "loky":
        pool = loky.ProcessPoolExecutor(2)
    else:
        pool = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method))
    mcp_tool(meet, executor=pool, name=method)
"""
METHODS = "fork", "spawn", "forkserver", "loky"


@pytest.mark.skipif(os.name == "nt", reason="kills a kernel")
@pytest.mark.slow
@pytest.mark.needs("loky")
def test_the_workers_of_pools_end_with_a_kernel_that_is_killed(home):
    with live_kernel(home, env={"TMPDIR": str(home)}) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(MEET.format(methods=METHODS))
        with Link(record_of(kernel)) as link:
            workers = set()
            for method in METHODS:  # in turn: no fork beside a thread that starts the others
                for _ in range(2):
                    link.start(method, folder=str(home / f"met by {method}"))
                workers |= {int(text_of(link.result())) for _ in range(2)}
        family = {child.pid for child in psutil.Process(kernel.pid).children(recursive=True)}
        assert len(workers & family) == 2 * len(METHODS)
        os.kill(kernel.pid, signal.SIGKILL)
        wait_for_ends(family)


MORTAL = """
import os, signal
from concurrent.futures import ProcessPoolExecutor
from mcp_notebook import mcp_tool

pool = ProcessPoolExecutor(1, initializer=os.umask, initargs=(0o67,))

@mcp_tool(executor=pool)
def die() -> None:
    'Die.'
    os.kill(os.getpid(), signal.SIGKILL)

@mcp_tool(executor=pool)
def read_mask() -> str:
    'Read.'
    mask = os.umask(0)
    os.umask(mask)
    return oct(mask)
"""


@pytest.mark.skipif(os.name == "nt", reason="kills a worker")
def test_a_pool_whose_worker_was_killed_is_made_anew(shared_kernel):
    shared_kernel.ok(MORTAL)
    with Link(record_of(shared_kernel)) as link:
        for _ in range(2):
            assert text_of(link.call("read_mask")) == "0o67"
            result = link.call("die")
            assert result.is_error
            assert "The next call gets a new pool" in text_of(result)
        assert text_of(link.call("read_mask")) == "0o67"


@pytest.mark.skipif(os.name == "nt", reason="kills a worker")
def test_so_is_one_that_broke_in_a_cell(shared_kernel):
    shared_kernel.ok(MORTAL)
    shared_kernel.run("pool.submit(signal.raise_signal, signal.SIGKILL).result()")
    with Link(record_of(shared_kernel)) as link:
        assert text_of(link.call("read_mask")) == "0o67"
