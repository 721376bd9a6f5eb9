"""The program of a headless kernel, started as the bridge does."""

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from live import TIMEOUT, kernel_env

import mcp_notebook
from mcp_notebook.bridge.headless.kernel_process import KernelLaunch, run_kernel
from mcp_notebook.settings.settings import Settings

pytestmark = pytest.mark.anyio

IS_LOADED = "import sys; print('mcp_notebook.kernel.extension' in sys.modules)"
LOAD = "%load_ext mcp_notebook\nprint('loaded')"
FIND_LAUNCHER = "import importlib.util as u; print(u.find_spec('headless_launcher'))"


@pytest.fixture(autouse=True)
def _look_for_kernelspecs_at_home(home, monkeypatch):
    for name, value in kernel_env(home).items():
        monkeypatch.setenv(name, value)


def write_kernelspec(home, name, words):
    """Write a kernelspec that runs this Python with these words."""
    folder = home / ".local" / "share" / "jupyter" / "kernels" / name
    folder.mkdir(parents=True)
    argv = [sys.executable, *words, "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": name, "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


@asynccontextmanager
async def _cells(home, *, kernel="python3", **env):
    """Run a kernel for the block, and a cell whenever what this yields is called."""
    launch = KernelLaunch(kernel, home / "sums.ipynb", kernel_env(home) | env)

    async def run_cell(source):
        texts = []

        def note(message):
            texts.append(message["content"].get("text", ""))

        reply = await running.client.execute_interactive(source, output_hook=note, timeout=TIMEOUT)
        content = reply["content"]
        assert content["status"] == "ok", content
        return "".join(texts).strip()

    async with run_kernel(launch, Settings(home=home / "state")) as running:
        yield run_cell


@pytest.fixture(scope="module")
def anyio_backend():
    """One loop for all, as a kernel that several tests share lives in it."""
    return "asyncio"


@pytest.fixture(scope="module")
async def run_cell(module_home):
    """Run cells of a notebook in whose folder lie modules of many names."""
    (module_home / "helpers.py").write_text("number = 7", encoding="utf-8")
    for name in ("contextlib", "ipykernel", "mcp_notebook", "pydantic"):
        (module_home / f"{name}.py").write_text(f"raise SystemExit({name!r})", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(module_home)
        async with _cells(module_home) as run_cell:
            yield run_cell


async def test_the_extension_is_in_memory_before_a_cell_asks_for_it(run_cell):
    assert await run_cell(IS_LOADED) == "True"
    assert (await run_cell(LOAD)).endswith("loaded")


@pytest.mark.skipif(sys.platform == "win32", reason="its shell has other commands")
async def test_a_command_that_asks_finds_the_end_of_its_input(run_cell):
    text = await run_cell("!read x; echo got:$x; cat </dev/tty; cat; echo end")
    assert text.startswith("got:")
    assert text.endswith("end")
    assert "/dev/tty" in text


async def test_no_debugger_is_loaded_until_a_cell_imports_it(run_cell):
    assert await run_cell("import sys; print('debugpy' in sys.modules)") == "False"
    assert await run_cell("import debugpy; print(callable(debugpy.listen))") == "True"


async def test_nothing_in_the_notebooks_folder_takes_the_place_of_what_a_kernel_loads(run_cell):
    assert await run_cell("import os; print(os.path.exists('pydantic.py'))") == "True"
    assert await run_cell(IS_LOADED) == "True"


async def test_cells_import_from_the_notebooks_folder_and_not_from_the_launchers(run_cell):
    assert await run_cell("import helpers; print(helpers.number)") == "7"
    assert await run_cell(FIND_LAUNCHER) == "None"


# -- kernels that are started otherwise ------------------------------------------------------------


@pytest.mark.slow
async def test_a_startup_file_can_import_the_debugger(home):
    startup = home / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    source = "import debugpy\nis_imported = callable(debugpy.listen)"
    (startup / "debug.py").write_text(source, encoding="utf-8")
    async with _cells(home, IPYTHONDIR=str(home / "ipython")) as run_cell:
        assert await run_cell("print(is_imported)") == "True"


@pytest.mark.slow
async def test_cells_import_nothing_from_the_launchers_folder_if_its_path_has_a_link(home):
    package = Path(mcp_notebook.__file__).parent
    (home / "installed").symlink_to(package.parent, target_is_directory=True)
    launcher = home / "installed" / package.name / "kernel" / "headless_launcher.py"
    write_kernelspec(home, "linked", [str(launcher)])
    async with _cells(home, kernel="linked") as run_cell:
        assert await run_cell(IS_LOADED) == "True"
        assert await run_cell(FIND_LAUNCHER) == "None"


@pytest.mark.slow
async def test_an_extension_that_cannot_be_loaded_keeps_no_kernel_from_starting(home):
    (home / "broken").mkdir()
    hook = "import sys; sys.modules['annotated_types'] = None"
    (home / "broken" / "sitecustomize.py").write_text(hook, encoding="utf-8")
    async with _cells(home, PYTHONPATH=str(home / "broken")) as run_cell:
        assert await run_cell(IS_LOADED) == "False"


@pytest.mark.slow
async def test_the_kernelspec_that_ipykernel_installs_is_started_in_the_same_way(home):
    write_kernelspec(home, "own", ["-Xfrozen_modules=off", "-m", "ipykernel_launcher"])
    async with _cells(home, kernel="own") as run_cell:
        assert await run_cell(IS_LOADED) == "True"
        assert await run_cell("import sys; print(sys._xoptions)") == "{'frozen_modules': 'off'}"
