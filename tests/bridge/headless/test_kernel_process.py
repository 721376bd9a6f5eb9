"""The process of a headless kernel, without a notebook's cells."""

import json
import os
import signal
import sys
import threading
from pathlib import Path

import anyio
import psutil
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from live import TIMEOUT, kernel_env

from mcp_notebook.bridge.headless.kernel_process import (
    KernelLaunch,
    choose_kernel,
    run_kernel,
)
from mcp_notebook.errors import NotebookError
from mcp_notebook.settings.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("installed", "language", "chosen"),
    [
        ({"python3": "python", "geo": "python"}, "python", "python3"),
        ({"geo": "Python", "ir": "R"}, "Python", "geo"),
        ({"geo": "python", "bio": "python"}, "python", None),  # either may be wrong
        ({"ir": "R"}, "python", None),
        ({"python3": "python"}, "R", None),
        ({"python3": "python"}, "", None),
    ],
)
def test_a_missing_kernel_is_replaced_by_the_default_or_only_one_for_python(
    monkeypatch, tmp_path, installed, language, chosen
):
    for name, of in installed.items():
        folder = tmp_path / "kernels" / name
        folder.mkdir(parents=True)
        spec = {"argv": [f"/envs/{name}/python"], "display_name": name, "language": of}
        (folder / "kernel.json").write_text(json.dumps(spec))
    (tmp_path / "kernels" / "broken").mkdir()
    (tmp_path / "kernels" / "broken" / "kernel.json").write_text("{")
    monkeypatch.setattr(KernelSpecManager, "ensure_native_kernel", False)
    monkeypatch.setattr(KernelSpecManager, "kernel_dirs", [str(tmp_path / "kernels")])
    if chosen is None:
        expected = r"sums\.ipynb needs the kernel 'gone', which is not installed here.*Installed: "
        with pytest.raises(NotebookError, match=expected + f".*{min(installed)}"):
            choose_kernel("gone", Path("sums.ipynb"), language)
    else:
        name, note = choose_kernel("gone", Path("sums.ipynb"), language)
        assert name == chosen
        assert note == (
            "sums.ipynb was saved with the kernel 'gone', which is not installed here. "
            f"It runs in {chosen!r} instead (/envs/{chosen}/python)."
        )
        assert choose_kernel(chosen, Path("sums.ipynb")) == (chosen, "")


async def test_a_kernel_runs_in_the_notebooks_folder_and_ends_with_the_block(home):
    settings = Settings(home=home / "state")
    launch = KernelLaunch("python3", home / "sums.ipynb", kernel_env(home))
    async with run_kernel(launch, settings) as kernel:
        process = psutil.Process(kernel.manager.provisioner.pid)
        assert Path(process.cwd()) == home
        folder = kernel.log.parent
        assert folder.is_dir()
        reply = await kernel.client.execute_interactive("1 + 1", timeout=TIMEOUT)
        assert reply["content"]["status"] == "ok"
    assert not process.is_running()
    assert not folder.exists()
    assert list((home / ".ipython").rglob("history*")) == []  # nobody has typed these cells


@pytest.mark.slow
async def test_a_kernel_costs_no_thread_that_could_break_when_it_is_left(home):
    launch = KernelLaunch("python3", home / "sums.ipynb", kernel_env(home))
    before = set(threading.enumerate())
    async with run_kernel(launch, Settings(home=home / "state")):
        threads = {type(thread).__name__ for thread in set(threading.enumerate()) - before}
        assert "HBChannel" not in threads


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
async def test_how_a_kernel_ended_is_known_as_soon_as_it_has(home):
    settings = Settings(home=home / "state")
    launch = KernelLaunch("python3", home / "sums.ipynb", kernel_env(home))
    async with run_kernel(launch, settings) as kernel:
        os.kill(kernel.manager.provisioner.pid, signal.SIGKILL)
        with anyio.fail_after(TIMEOUT):
            assert await kernel.wait_for_end() == "was killed by SIGKILL (out of memory, perhaps)"
        assert kernel.describe_death().startswith("Its process was killed by SIGKILL")


async def test_a_program_that_ends_at_once_is_told_with_what_it_wrote(home, monkeypatch):
    script = home / "sitecustomize.py"
    script.write_text("import sys; sys.exit('no way')", encoding="utf-8")
    env = kernel_env(home) | {"PYTHONPATH": str(home)}
    launch = KernelLaunch("python3", home / "a.ipynb", env)
    with pytest.raises(NotebookError, match=r"(?s)ended while starting.*no way"):
        async with run_kernel(launch, Settings(home=home / "state")):
            pass
