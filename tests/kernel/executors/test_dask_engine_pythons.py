"""A cluster of Dask's whose scheduler and worker have another Python than the notebook."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from live import Link, record_of, text_of

pytestmark = [pytest.mark.slow, pytest.mark.needs("distributed")]

TOOL = '''
from distributed import Client
from mcp_notebook import mcp_tool
other_client = Client(scheduler_file={file!r})

@mcp_tool(executor=other_client)
def add(a: int, b: int) -> int:
    """Add."""
    return a + b
'''
ENVIRONMENT = os.environ | {"PYTHONPATH": sysconfig.get_path("purelib")}


def find_other_python():
    """Return a Python of another version in which the notebook's Dask runs; None: there is none."""
    minors = [minor for minor in range(11, 20) if minor != sys.version_info.minor]
    places = [shutil.which(f"python3.{minor}") for minor in minors]
    # pyenv and uv keep versions side by side.
    places += sorted(Path(sys.base_prefix).parent.glob("*/bin/python3"))
    code = (
        f"import sys, distributed.cli; assert (3, 11) <= sys.version_info[:2] "
        f"!= {sys.version_info[:2]}"
    )
    for python in filter(None, places):
        found = subprocess.run(
            [python, "-c", code], env=ENVIRONMENT, capture_output=True, check=False
        )
        if found.returncode == 0:
            return python
    return None


@pytest.fixture
def cluster(tmp_path):
    """Start a scheduler and a worker; return the scheduler's process and its file."""
    python = find_other_python()
    if python is None:
        pytest.skip("there is no other Python that runs this one's distributed")
    file = tmp_path / "scheduler.json"
    options = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
    commands = [
        ["distributed.cli.dask_scheduler", *options, "--port", "0"],
        ["distributed.cli.dask_worker", *options, "--no-nanny", "--local-directory", str(tmp_path)],
    ]
    processes = [
        subprocess.Popen([python, "-m", *command], env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        for command in commands
    ]
    yield processes[0], file
    for process in reversed(processes):
        process.terminate()
        process.wait()


def test_a_cluster_with_another_python_says_so_and_lives_on(cluster, shared_kernel):
    scheduler, file = cluster
    while not file.exists():
        assert scheduler.poll() is None
    shared_kernel.ok(TOOL.format(file=str(file)))
    with Link(record_of(shared_kernel)) as link:
        texts = [text_of(link.call("add", a=1, b=2)) for _ in range(2)]
    shared_kernel.ok("other_client.close()")
    for text in texts:
        assert text.startswith(
            "The function of 'add' cannot run on its executor's worker: the worker has Python 3."
        )
    assert scheduler.poll() is None
