"""A real cluster of Dask's, and what happens to its workers and to itself."""

import re
from pathlib import Path

import pytest
from limits_files import set_limits
from live import Link, live_kernel, record_of, text_of, until

from mcp_notebook.wire import messages

pytestmark = [pytest.mark.slow, pytest.mark.needs("distributed")]

CLUSTER = """
from distributed import Client, LocalCluster
cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
client = Client(cluster)
"""
TOOLS = '''
import os, pathlib, random, time
from mcp_notebook import Context, mcp_tool

@mcp_tool(executor=client)
def draw() -> float:
    """Draw."""
    return random.SystemRandom().random()

@mcp_tool(executor=client)
def kill(runs: str) -> None:
    """Kill the worker."""
    with open(runs, "a") as file:
        file.write("run\\n")
    os.kill(os.getpid(), 9)

@mcp_tool(executor=client)
def wait(until: str, began: str, ctx: Context) -> str:
    """Wait for a file, or until nobody waits any more."""
    pathlib.Path(began).write_text(str(os.getpid()))
    while not pathlib.Path(until).exists():
        if ctx.cancelled:
            pathlib.Path(began).with_suffix(".cancelled").touch()
            return "cancelled"
        time.sleep(0.01)
    return "waited"

@mcp_tool(executor=client, timeout=1)
def be_slow(until: str, began: str) -> str:
    """Wait for a file."""
    pathlib.Path(began).write_text(str(os.getpid()))
    while not pathlib.Path(until).exists():
        time.sleep(0.01)
    return "waited"
'''


@pytest.fixture(scope="module")
def cluster(module_home):
    """Yield a kernel that has a cluster of two workers."""
    with live_kernel(module_home, env=set_limits(module_home, max_waiting_calls=100)) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(CLUSTER)
        kernel.ok(TOOLS)
        yield kernel
        kernel.run("client.shutdown()")


@pytest.fixture
def link(cluster):
    cluster.ok("client.wait_for_workers(2, timeout=30)")  # also those of a test before
    with Link(record_of(cluster)) as link:
        yield link


@pytest.fixture
def paths(tmp_path):
    """The files that hold a tool until the end of the test, by the names of its parameters."""
    yield {"until": str(tmp_path / "until"), "began": str(tmp_path / "began")}
    (tmp_path / "until").touch()


def wait_for_file(path):
    until(Path(path).exists)


def wait_for_text(link, pattern):
    """Wait until a call is said to wait for this."""

    def is_said(message):
        return re.search(pattern, str(getattr(message, "message", None))) is not None

    return link.receive_until(is_said)[-1]


def test_a_hundred_calls_at_once_have_a_hundred_answers(link):
    for _ in range(100):
        link.start("draw")
    assert len({text_of(link.result()) for _ in range(100)}) == 100


def test_a_function_whose_worker_is_killed_is_tried_once(link, tmp_path):
    runs = tmp_path / "runs"
    text = text_of(link.call("kill", runs=str(runs)))
    assert text.startswith(
        "The worker of the Dask cluster that ran 'kill' ended before the function did (tcp://"
    )
    assert runs.read_text(encoding="utf-8") == "run\n"
    assert float(text_of(link.call("draw")))


def test_a_call_waits_for_a_worker_and_says_so(cluster, link, paths):
    cluster.ok("cluster.scale(0)\nwhile client.scheduler_info()['workers']: time.sleep(0.01)")
    link.start("be_slow", progress=True, **paths)
    wait_for_text(link, "waiting for a worker of the Dask cluster, which has none now")
    cluster.ok("cluster.scale(1)")
    wait_for_file(paths["began"])
    # Its second began with the function, not when it was sent.
    Path(paths["until"]).touch()
    assert text_of(link.result()) == "waited"
    cluster.ok("cluster.scale(2)")


def test_a_cancelled_call_is_answered_and_its_function_learns_of_it(link, paths):
    number = link.start("wait", **paths)
    wait_for_file(paths["began"])
    link.send(messages.Cancel(id=number))
    assert link.result().is_error
    wait_for_file(paths["began"] + ".cancelled")


def test_workers_need_nothing_of_this_package(cluster, link):
    cluster.ok("def forbid():\n    import sys\n    sys.modules['mcp_notebook'] = None\n")
    cluster.ok("client.run(forbid)")
    assert float(text_of(link.call("draw")))


def test_large_variables_can_be_scattered(cluster, link):
    cluster.ok(
        "import numpy as np\n"
        "table = client.scatter(np.ones(12_500_000), broadcast=True)\n"
        "@mcp_tool(executor=client)\n"
        "def sum_up_there() -> float:\n    'Sum up.'\n    return float(table.result().sum())\n"
    )
    assert text_of(link.call("sum_up_there")) == "12500000.0"


FAR_CLUSTER = """
import subprocess, sys
options = ["--host", "127.0.0.1", "--no-dashboard", "--port", "0", "--scheduler-file", {file!r}]
scheduler = subprocess.Popen(
    [sys.executable, "-m", "distributed.cli.dask_scheduler", *options], stderr=subprocess.DEVNULL
)
far_client = Client(scheduler_file={file!r})
@mcp_tool(executor=far_client)
def run_far() -> None:
    "Run."
"""


def test_a_scheduler_that_does_not_answer_or_is_gone_is_told(cluster, link, tmp_path):
    cluster.ok(FAR_CLUSTER.format(file=str(tmp_path / "scheduler.json")))
    link.start("run_far", progress=True)
    wait_for_text(link, "waiting for a worker of the Dask cluster, which has none now")
    try:
        cluster.ok("import signal; scheduler.send_signal(signal.SIGSTOP)")
        wait_for_text(link, "waiting for the scheduler of the Dask cluster, which does not answer")
    finally:
        cluster.ok("scheduler.kill(); scheduler.wait()")
    assert text_of(link.result()).startswith("The Dask cluster of 'run_far' is gone: ")
    cluster.ok("far_client.close()")


HELD_FETCH = """
import threading
from distributed import Future
may_fetch, fetches, fetch_result = threading.Event(), threading.Event(), Future.result

def fetch_late(future, timeout=None):
    # The client's loop ends with the client, and with it what would wake up who waits.
    fetches.set()
    may_fetch.wait()
    return fetch_result(future, timeout)

Future.result = fetch_late
new_cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
new_client = Client(new_cluster)

@mcp_tool(executor=new_client)
def answer() -> int:
    "Answer."
    return 42
"""


def test_a_call_whose_client_is_closed_while_its_result_is_fetched_is_told(cluster, link):
    cluster.ok(HELD_FETCH)
    try:
        link.start("answer")
        cluster.ok("fetches.wait(); new_client.close(); new_cluster.close()")
        assert text_of(link.result()).startswith("The Dask cluster of 'answer' is gone: ")
    finally:
        cluster.ok("may_fetch.set(); Future.result = fetch_result")


def test_a_cluster_that_is_gone_is_one_sentence(cluster, link, paths):
    link.start("wait", **paths)
    wait_for_file(paths["began"])
    cluster.ok("cluster.close()")
    text = text_of(link.result())  # its worker, or the scheduler, whichever ends first
    assert re.match("The (Dask cluster of 'wait' is gone:|worker of the Dask cluster) ", text)
    assert "Traceback" not in text
    text = text_of(link.call("draw"))
    assert text.startswith("The Dask cluster of 'draw' is gone: ")
