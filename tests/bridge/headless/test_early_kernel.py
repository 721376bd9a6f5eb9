import json
import os
import sys

import nbformat
import psutil
import pytest
from live import kernel_env

from mcp_notebook.bridge.headless.early_kernel import launch_early
from mcp_notebook.bridge.headless.notebook import run_notebook
from mcp_notebook.settings.settings import Settings

pytestmark = pytest.mark.anyio

ADD = '%%mcp_tool\ndef add(a: int, b: int) -> int:\n    "Add."\n    return a + b'


@pytest.fixture
def settings(home, monkeypatch):
    for name, value in kernel_env(home).items():
        monkeypatch.setenv(name, value)
    return Settings(home=home / "state")


def _write(home, *cells, kernel="python3", **fields):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": kernel, "display_name": kernel}},
    )
    path = home / "sums.ipynb"
    path.write_text(json.dumps(notebook | fields), encoding="utf-8")
    return path


async def test_a_kernel_that_was_started_early_runs_the_notebook_and_ends_with_it(home, settings):
    path = _write(home, "%load_ext mcp_notebook", ADD)
    async with launch_early(path, settings) as early:
        (kernel,) = psutil.Process().children()
        async with run_notebook(path, settings, progress=lambda _: None, early=early) as running:
            assert (running.record.id, running.record.pid) == (early.kernel_id, kernel.pid)
            assert psutil.Process().children() == [kernel]
        assert psutil.Process().children() == []
        assert not early.launch.log.parent.exists()


async def test_an_early_kernel_that_nobody_uses_ends_with_the_block(home, settings):
    async with launch_early(_write(home), settings) as early:
        assert psutil.Process().children() != []
    assert psutil.Process().children() == []
    assert not early.launch.log.parent.exists()


@pytest.mark.slow
async def test_the_notebook_that_is_read_decides_about_its_kernel(home, settings):
    path = _write(home, "%load_ext mcp_notebook", ADD)
    async with launch_early(path, settings) as early:
        folder = home / ".local" / "share" / "jupyter" / "kernels" / "other"
        folder.mkdir(parents=True)
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec = {"argv": argv, "display_name": "Other", "language": "python"}
        (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
        _write(home, "%load_ext mcp_notebook", ADD, kernel="other")
        async with run_notebook(path, settings, progress=lambda _: None, early=early) as running:
            (kernel,) = psutil.Process().children()
            assert running.record.pid == kernel.pid


@pytest.mark.parametrize("fields", [{"nbformat": 3}, {"nbformat": "4"}, {"metadata": []}])
async def test_what_has_to_be_read_with_care_starts_no_kernel(home, settings, fields):
    async with launch_early(_write(home, **fields), settings) as early:
        assert early is None
        assert psutil.Process().children() == []


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names")
async def test_a_pipe_is_left_to_who_reads_it_once(home, settings):
    path = home / "sums.ipynb"
    os.mkfifo(path)
    async with launch_early(path, settings) as early:
        assert early is None


async def test_where_only_trusted_notebooks_run_no_kernel_starts_in_the_folder_before(home):
    settings = Settings(home=home / "state", trusted_only=True)
    async with launch_early(_write(home), settings) as early:
        assert early is None
        assert psutil.Process().children() == []
