"""What executors get, by what they pickle with."""

import functools
import pickle
import platform
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import cloudpickle
import pytest

from mcp_notebook import mcp_tool
from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.executors import job as job_module
from mcp_notebook.kernel.executors.job import Job


@mcp_tool
def lock_user():
    """Use what cannot be pickled."""
    return LOCK


LOCK = threading.Lock()


@pytest.mark.slow
def test_the_pickle_needs_nothing_of_this_package_and_has_no_mark(tmp_path):
    code = """
from typing import Annotated
from pydantic import Field
from mcp_notebook import Context, Header, mcp_tool
from mcp_notebook.kernel.executors.job import Job
from concurrent.futures import ThreadPoolExecutor
import pickle, sys
@mcp_tool(executor=ThreadPoolExecutor(1))
def helper(): return "helped"
@mcp_tool(executor=ThreadPoolExecutor(1))
def tool(x: Annotated[int, Field(ge=1), Header("X")], ctx: Context):
    print(isinstance(ctx, Context), ctx.tool)
    return x, helper()
pickle.dump(Job("tool", tool, {"x": 1, "ctx": Context("tool")}), open(sys.argv[1], "wb"))
"""
    job = tmp_path / "job"
    subprocess.run([sys.executable, "-c", code, str(job)], check=True)
    for name in (b"kernel.tools.context", b"kernel.tools.options", b"pydantic"):
        assert name not in job.read_bytes()
    code = """
import sys
sys.modules["mcp_notebook"] = sys.modules["pydantic"] = None
import pickle
import platform
outputs, value, error = pickle.load(open(sys.argv[1], "rb"))()
print(outputs, pickle.loads(value), error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code, str(job)], check=True, capture_output=True, text=True
    )
    assert run.stdout == "['True tool\\n'] ((1, 'helped'), []) None\n"


def test_an_executor_may_wrap_a_job_in_a_function_of_its_own_and_pickle_that():
    job = Job("double", lambda x: 2 * x, {"x": 4})
    assert job.__qualname__ == "double"

    @functools.wraps(job)
    def wrapper(*args):
        return job(*args)

    value = pickle.loads(cloudpickle.dumps(wrapper))()
    assert job.read(value, None) == 8


def test_a_function_of_a_module_goes_by_its_name():
    job = Job("lock_user", lock_user, {})
    assert len(pickle.dumps(job)) < 60_000


def test_what_cannot_be_pickled_is_told_with_its_reason():
    job = Job("held", lambda: None, {"lock": threading.Lock()})
    with pytest.raises(ToolError, match="the argument 'lock', of type lock, cannot be pickled"):
        pickle.dumps(job)
    assert job.failure is not None


def test_a_worker_with_another_python_loads_nothing_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 99))
    pickled = pickle.dumps(Job("double", lambda n: 2 * n, {"n": 1}))
    monkeypatch.undo()
    answer = pickle.loads(pickled)()
    assert answer == platform.python_version()
    with pytest.raises(
        ToolError, match=r"'double' cannot run .* worker has Python 3\.9\.1, the no"
    ):
        Job("double", abs, {}).read("3.9.1", None)


def test_a_value_that_cannot_be_sent_back_is_one_sentence():
    job = Job("give", threading.Lock, {})
    pickled = pickle.dumps(job)
    with pytest.raises(
        ToolError, match=r"'give' returned cannot be sent from .* of type lock cannot be pickled"
    ) as raised:
        job.read(pickle.loads(pickled)(), None)
    assert raised.value.__cause__ is None


def test_a_value_that_only_its_worker_knows_is_one_sentence():
    value = b"cnot_installed\nThing\n."
    with pytest.raises(ToolError, match=r"cannot be read in the notebook \(ModuleNotFoundError: "):
        Job("give", abs, {}).read(([], value, None), None)


def test_first_jobs_that_are_pickled_at_the_same_time_need_nothing_of_this_package(monkeypatch):
    """What names the modules that go by value is shared: nobody may withdraw it meanwhile."""
    both, dump = threading.Barrier(2), job_module.dump

    def dump_together(value):
        with suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        return dump(value)

    monkeypatch.setattr(job_module, "dump", dump_together)
    job_module._pickle_runner_once.cache_clear()
    with ThreadPoolExecutor(2) as threads:
        first, second = (threads.submit(job_module._pickle_runner) for _ in range(2))
        assert first.result() == second.result()
