import asyncio
import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import nbformat
import psutil
import pytest
from file_events import appears
from live import kernel_env, text_of

from mcp_notebook.bridge.headless import kernel_process
from mcp_notebook.bridge.headless.notebook import run_notebook
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery.records import list_live_records
from mcp_notebook.errors import NotebookError
from mcp_notebook.settings.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("forked_kernels")]

LOAD = "%load_ext mcp_notebook"
ADD = '%%mcp_tool\ndef add(a: int, b: int) -> int:\n    "Add."\n    return a + b'


def _notebook(folder, *cells, name="sums.ipynb", kernel="python3", tags=(), **metadata):
    path = folder / name
    made = [nbformat.v4.new_code_cell(cell) for cell in cells]
    for cell in made:
        cell.metadata["tags"] = list(tags)
    if kernel:
        metadata["kernelspec"] = {"name": kernel, "display_name": kernel}
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("# Sums"), *made], metadata=metadata
    )
    nbformat.write(notebook, path)
    return path


def _kernelspec(home, name, argv, language="python"):
    folder = home / ".local" / "share" / "jupyter" / "kernels" / name
    folder.mkdir(parents=True)
    spec = {"argv": argv, "display_name": name, "language": language}
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


@asynccontextmanager
async def _run(path, settings, **options):
    told = []
    async with run_notebook(path, settings, progress=told.append, **options) as running:
        yield running.record, told


async def _refused(path, settings, **options):
    """Return the sentence with which a notebook is refused; nothing may be left of it."""
    with pytest.raises(NotebookError) as caught:
        async with _run(path, settings, **options):
            pass
    assert list_live_records(settings.records_folder) == ()
    assert psutil.Process().children() == []
    return str(caught.value)


# -- notebooks that run ----------------------------------------------------------------------------


@pytest.mark.smoke
async def test_a_notebook_is_run_and_its_kernel_answers_until_the_block_ends(folder, settings):
    path = _notebook(folder, LOAD, ADD)
    async with _run(path, settings) as (record, _):
        assert (record.owner, record.name, record.notebook) == ("bridge", "sums", str(path))
        catalog = Catalog()
        async with Links(catalog) as links:
            await links.connect(record)
            result = await links.call(catalog.find("add"), {"a": 2, "b": 3})
        assert "5" in text_of(result)
        pid = record.pid
    assert not psutil.pid_exists(pid)
    assert list_live_records(settings.records_folder) == ()


async def test_cells_run_in_order_in_the_notebooks_folder(folder, settings):
    (folder / "data.txt").write_text("7", encoding="utf-8")
    path = _notebook(folder, LOAD, "n = int(open('data.txt').read())", "assert n == 7", ADD)
    async with _run(path, settings) as (record, _):
        assert record.notebook == str(path)


async def test_progress_is_told_before_each_cell_and_at_the_end(folder, settings):
    path = _notebook(folder, LOAD, ADD)
    async with _run(path, settings) as (_, told):
        assert [(step.done, step.total, step.source) for step in told] == [
            (0, 2, LOAD),
            (1, 2, ADD),
            (2, 2, ""),
        ]


@pytest.mark.slow
async def test_an_older_notebook_format_is_read(folder, settings):
    current = nbformat.read(_notebook(folder, LOAD, ADD), as_version=4)
    nbformat.write(nbformat.convert(current, 3), folder / "old.ipynb", version=3)
    async with _run(folder / "old.ipynb", settings) as (record, _):
        assert record.name == "old"


async def test_nothing_of_the_bridge_leaks_into_the_kernel(folder, settings, monkeypatch):
    monkeypatch.setenv("MCP_NOTEBOOK_TOKEN", "secret")
    check = "import os; assert 'secret' not in str(os.environ)"
    async with _run(_notebook(folder, LOAD, check, ADD), settings):
        pass


async def test_a_failing_cell_is_passed_over_and_told_when_errors_are_allowed(folder, settings):
    path = _notebook(folder, LOAD, "1 / 0", ADD)
    async with _run(path, settings, allow_errors=True) as (_, told):
        failures = [step.failure for step in told if step.failure]
        assert len(failures) == 1
        assert "Code cell 2 of 3 of sums.ipynb failed" in failures[0]
        assert "ZeroDivisionError" in failures[0]


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("%mcp_tool x add\nadd(1, 2)", "Code cell 3 of 4 of sums.ipynb:\n`x` is not offered"),
        ("%mcp_tool x", "Code cell 3 of 4 of sums.ipynb:\n`x` is not offered"),
        ("%%mcp_tool bad(n: Missing)\nn", "Code cell 3 of 4 of sums.ipynb:\n`bad` is not offered"),
        (
            "%mcp_tool x add\nget_ipython().run_line_magic('mcp_tool', 'y')",
            "Code cell 3 of 4 of sums.ipynb:\n`x` is not offered",
        ),
        ("%mcp_tool x y", "Code cell 3 of 4 of sums.ipynb:\n`x` is not offered"),
        (
            (
                "%unload_ext mcp_notebook\n@__import__('mcp_notebook').mcp_tool\n"
                "def g(a: 'Missing'): ...\n%load_ext mcp_notebook\n%mcp_tool add"
            ),
            "Code cell 3 of 4 of sums.ipynb:\n`g` is ",
        ),
    ],
)
async def test_a_function_that_cannot_be_a_tool_is_told_and_does_not_end_the_start(
    folder, settings, cell, told
):
    path = _notebook(folder, LOAD, ADD, cell, "x = 2")
    async with _run(path, settings) as (_, steps):
        (failure,) = [step.failure for step in steps if step.failure]
        assert failure.startswith(told)


@pytest.mark.parametrize(
    "cell", ["%mcp_tool x add\n1 / 0", "print('`x` is not offered as a tool: x')\n1/0"]
)
async def test_a_cell_that_fails_besides_ends_the_start(folder, settings, cell):
    """Also if its output looks as if only a function were refused."""
    said = await _refused(_notebook(folder, LOAD, ADD, cell), settings)
    assert "Code cell 3 of 3 of sums.ipynb failed" in said
    assert "ZeroDivisionError" in said


async def test_a_notebook_of_which_no_function_can_be_a_tool_is_told_why(folder, settings):
    said = await _refused(_notebook(folder, LOAD, "%mcp_tool x"), settings)
    assert "`x` is not offered as a tool: `x` is not defined in this notebook" in said
    assert said.endswith("sums.ipynb offers no tools: correct what failed.")


async def test_a_cell_with_jupyters_tag_for_it_may_fail(folder, settings):
    path = _notebook(folder, LOAD, ADD, "1 / 0", tags=["raises-exception"])
    async with _run(path, settings) as (record, _):
        assert record.name == "sums"


# -- notebooks that do not -------------------------------------------------------------------------


@pytest.mark.smoke
async def test_a_failing_cell_is_shown_with_number_source_and_plain_traceback(folder, settings):
    said = await _refused(_notebook(folder, LOAD, "x = 1\nx / 0", ADD), settings)
    assert "Code cell 2 of 3 of sums.ipynb failed" in said
    assert "    x = 1\n    x / 0" in said
    assert "ZeroDivisionError: division by zero" in said
    assert "`raises-exception`" in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("import sys\nprint('no such table', file=sys.stderr)\n1 / 0", "no such table"),
        ("%%bash\necho 'not found: sales' >&2\nexit 4", "not found: sales"),
        (
            "import argparse\nargparse.ArgumentParser(usage='pass --rows').parse_args(['--row'])",
            "usage: pass --rows",
        ),
        ("!echo no matching distribution\nimport nonsense", "no matching distribution"),
    ],
)
async def test_what_a_failing_cell_wrote_is_shown_with_its_error(folder, settings, cell, reason):
    said = await _refused(_notebook(folder, LOAD, cell, ADD), settings)
    assert "Code cell 2 of 3 of sums.ipynb failed" in said
    _, _, written = said.split("\n\n", 2)  # after the sentence and the cell
    assert written.split("\n\n")[0].startswith(reason)


async def test_of_long_output_a_failing_cell_shows_the_end(folder, settings):
    cell = "print('begin' + 9_000 * ' .' + 'end')\n1 / 0"
    said = await _refused(_notebook(folder, LOAD, cell, ADD), settings)
    assert len(said) < 4_000
    assert ". .end\n" in said


@pytest.mark.parametrize("cells", [["exit()", ADD], [ADD, "exit"], [ADD, "x = 1\nquit()"]])
async def test_a_cell_that_exits_is_named_in_one_sentence(folder, settings, cells):
    number = 2 + (cells[0] is ADD)
    assert await _refused(_notebook(folder, LOAD, *cells), settings) == (
        f"Code cell {number} of 3 of sums.ipynb ends the kernel with `exit()` or `quit()`, and the "
        "tools with it: remove that line."
    )


async def test_a_cell_that_exits_is_named(folder, settings):
    assert "Code cell 3 of 3" in await _refused(_notebook(folder, LOAD, ADD, "exit()"), settings)


async def test_a_cell_that_asks_for_input_is_told_that_nobody_answers(folder, settings):
    said = await _refused(_notebook(folder, LOAD, "name = input('Who? ')"), settings)
    assert "name = input('Who? ')" in said
    assert "nobody can answer without a frontend" in said


async def test_a_kernel_that_dies_in_a_cell_is_told_with_its_status(folder, settings):
    said = await _refused(_notebook(folder, LOAD, "import os\nos._exit(3)"), settings)
    assert "died in this cell: Code cell 2 of 2" in said
    assert "status 3" in said


@pytest.mark.slow
async def test_a_kernel_that_is_killed_is_told_as_out_of_memory(folder, settings):
    said = await _refused(_notebook(folder, "import os\nos.kill(os.getpid(), 9)"), settings)
    assert "out of memory" in said


async def test_a_notebook_that_does_not_load_the_extension_is_told_how_to(folder, settings):
    said = await _refused(_notebook(folder, "x = 1"), settings)
    assert "sums.ipynb offers no tools" in said
    assert LOAD in said


@pytest.mark.parametrize("cell", [ADD, "%mcp_tool sum", ADD.replace("%%", "@"), "%mcp status"])
async def test_a_cell_that_needs_the_extension_is_told_that_it_is_not_loaded(
    folder, settings, cell
):
    said = await _refused(_notebook(folder, cell), settings)
    assert said.splitlines()[-1] == (
        "The notebook has not loaded mcp_notebook: add `%load_ext mcp_notebook` as its first cell."
    )


async def test_a_notebook_that_declares_no_tool_is_told_how_to(folder, settings):
    said = await _refused(_notebook(folder, LOAD, "x = 1"), settings)
    assert "declares none" in said
    assert "%%mcp_tool" in said


async def test_cells_tagged_skip_execution_do_not_run(folder, settings):
    path = _notebook(folder, LOAD, "1 / 0", tags=["skip-execution"])
    assert "offers no tools" in await _refused(path, settings)


async def test_a_file_named_without_its_ending_is_suggested(folder, settings):
    path = _notebook(folder, LOAD)
    said = await _refused(path.with_suffix(""), settings)
    assert said.endswith(f"does not exist. Did you mean {path.name}?")


async def test_a_folder_is_answered_with_a_notebook_in_it(folder, settings):
    path = _notebook(folder, LOAD)
    assert f"for example {path}" in await _refused(folder, settings)


@pytest.mark.parametrize(
    "text",
    ["", "print('hello')", "[]", "3", "null", "{}", '{"nbformat": 99}', '{"nbformat": 4}',
     '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": 3}',
     '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code"}]}',
     '{"nbformat": "four", "cells": []}', '{"name": "a package", "version": "1.0"}'],
)  # fmt: skip
async def test_a_file_that_is_not_a_notebook_is_an_error_of_one_line(folder, settings, text):
    path = folder / "wrong.ipynb"
    path.write_text(text, encoding="utf-8")
    said = await _refused(path, settings)
    assert f"{path} is not a Jupyter notebook" in said
    assert "\n" not in said


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root reads everything")
async def test_a_file_that_may_not_be_read_is_told_so(folder, settings):
    path = _notebook(folder, LOAD)
    path.chmod(0)
    assert "cannot be read: Permission denied" in await _refused(path, settings)


async def test_a_missing_kernelspec_is_named_with_those_that_exist(folder, settings):
    said = await _refused(_notebook(folder, LOAD, kernel="conda-gone"), settings)
    assert "'conda-gone', which is not installed here" in said
    assert "python3" in said


async def test_a_python_notebook_runs_in_the_kernel_that_there_is_and_says_so(
    folder, settings, capsys
):
    path = _notebook(folder, LOAD, ADD, kernel="conda-gone", language_info={"name": "python"})
    note = f"{path.name} was saved with the kernel 'conda-gone', which is not installed here."
    async with _run(path, settings):
        pass
    assert note in capsys.readouterr().err
    path = _notebook(folder, "import geo", kernel="conda-gone", language_info={"name": "python"})
    assert note in await _refused(path, settings)  # which may be why it failed


async def test_a_kernel_of_another_language_is_refused(folder, home, settings):
    _kernelspec(home, "ir", ["R"], language="R")
    said = await _refused(_notebook(folder, LOAD, kernel="ir"), settings)
    assert "which is for R" in said


async def test_an_environment_without_ipykernel_is_told_what_to_install(folder, home, settings):
    # -S: the interpreter finds no installed packages.
    argv = [sys.executable, "-S", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    _kernelspec(home, "bare", argv)
    said = await _refused(_notebook(folder, LOAD, kernel="bare"), settings)
    assert "ended while starting" in said
    assert "pip install ipykernel" in said


HIDES = """
import sys
class Hide:
    def find_spec(name, path=None, target=None):
        if name == "mcp_notebook":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hide)
from ipykernel.kernelapp import launch_new_instance
launch_new_instance()
"""


@pytest.mark.parametrize("options", [{}, {"allow_errors": True}])
async def test_an_environment_without_the_package_is_named_with_the_line_that_installs_it(
    folder, home, settings, options
):
    _kernelspec(home, "other", [sys.executable, "-c", HIDES, "-f", "{connection_file}"])
    said = await _refused(_notebook(folder, LOAD, ADD, kernel="other"), settings, **options)
    assert "its kernel 'other' runs in another environment" in said
    assert f"`uv pip install --python {sys.executable} " in said
    assert "Traceback" not in said
    assert "add `%load_ext" not in said


async def test_a_kernel_that_never_answers_is_given_up(folder, home):
    settings = Settings(home=home / "state", start_timeout=1)
    _kernelspec(home, "deaf", [sys.executable, "-c", "import time; time.sleep(600)"])
    said = await _refused(_notebook(folder, LOAD, kernel="deaf"), settings)
    assert "did not answer within 1 s" in said


# -- how it ends -----------------------------------------------------------------------------------

BUSY = "import time, pathlib\npathlib.Path('began').touch()\nwhile True: time.sleep(0.01)"


async def test_a_run_that_is_cancelled_leaves_no_kernel(folder, settings):
    path = _notebook(folder, LOAD, BUSY)

    async def run():
        async with _run(path, settings):
            raise AssertionError("the notebook never ends")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await appears(folder / "began")
        (kernel,) = psutil.Process().children()
        tasks.cancel_scope.cancel()
    assert not kernel.is_running()


@pytest.mark.slow
async def test_a_task_that_is_cancelled_the_asyncio_way_ends_cancelled(folder, settings):
    path = _notebook(folder, LOAD, BUSY)

    async def run():
        async with _run(path, settings):
            raise AssertionError("the notebook never ends")

    task = asyncio.ensure_future(run())
    await appears(folder / "began")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert psutil.Process().children() == []


@pytest.mark.slow
async def test_a_kernel_that_ignores_requests_is_killed_in_time(folder, settings):
    stubborn = (
        "import signal\n"
        "for s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\n"
        "get_ipython().kernel.do_shutdown = lambda *_: {'status': 'ok', 'restart': False}\n"
    )
    path = _notebook(folder, LOAD, ADD, stubborn)
    before = anyio.current_time()
    async with _run(path, settings) as (record, _):
        pid = record.pid
        began = anyio.current_time()
    limit = kernel_process._SHUTDOWN_LIMIT + 2 * (began - before)
    assert anyio.current_time() - began < limit
    assert not psutil.pid_exists(pid)


@pytest.mark.slow
def test_no_socket_or_folder_is_left_behind(folder, home):
    script = (
        "import anyio, sys\n"
        "from pathlib import Path\n"
        "from mcp_notebook.bridge.headless.notebook import run_notebook\n"
        "from mcp_notebook.settings.settings import Settings\n"
        "async def main():\n"
        "    settings = Settings(home=Path(sys.argv[2]))\n"
        "    async with run_notebook(Path(sys.argv[1]), settings, progress=lambda _: None):\n"
        "        print(*Path(sys.argv[3]).iterdir())\n"
        "anyio.run(main)\n"
    )
    path = _notebook(folder, LOAD, ADD)
    (home / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script, path, home / "state", home / "tmp"],
        env=kernel_env(home) | {"TMPDIR": str(home / "tmp")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()).parent == home / "tmp"
    assert list((home / "tmp").iterdir()) == []
