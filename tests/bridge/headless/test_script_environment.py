"""What needs uv and packages from an index is in .ci/distribution."""

from pathlib import Path

import pytest
from notebook_files import write_notebook

from mcp_notebook.bridge.headless import script_environment
from mcp_notebook.bridge.headless.early_kernel import launch_early
from mcp_notebook.bridge.headless.notebook import run_notebook
from mcp_notebook.bridge.headless.script_environment import find_block
from mcp_notebook.errors import NotebookError
from mcp_notebook.settings.settings import Settings

pytestmark = pytest.mark.anyio

BLOCK = '# /// script\n# dependencies = ["acme"]\n#\n# [tool.uv]\n# offline = true\n# ///'
LOAD = "%load_ext mcp_notebook"
ADD = '%%mcp_tool\ndef add(a: int, b: int) -> int:\n    "Add."\n    return a + b'
PATH = Path("sums.ipynb")


def _write(folder, *cells):
    return write_notebook(folder / PATH, *cells)


@pytest.mark.parametrize("cell", [BLOCK, f"{BLOCK}\nimport acme", f"%reset -f\n\n{BLOCK}\n"])
def test_the_block_is_found_in_any_code_cell(cell):
    assert find_block(PATH, [LOAD, cell, ADD]) == BLOCK


def test_a_second_block_is_an_error():
    with pytest.raises(NotebookError, match=r"sums.ipynb has 2 script blocks .* Merge them"):
        find_block(PATH, [BLOCK, BLOCK])


async def test_a_notebook_with_a_block_says_where_uv_comes_from_if_it_is_missing(
    folder, settings, monkeypatch
):
    path = _write(folder, BLOCK, LOAD, ADD)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("UV", raising=False)
    with pytest.raises(NotebookError, match=r"docs\.astral\.sh/uv.*MCP_NOTEBOOK_OWN_ENVIRONMENT=0"):
        async with run_notebook(path, settings, progress=lambda _: None):
            pass


async def test_no_kernel_is_started_early_for_a_notebook_with_a_block(folder, settings):
    async with launch_early(_write(folder, BLOCK, LOAD, ADD), settings) as early:
        assert early is None


@pytest.mark.usefixtures("forked_kernels")
async def test_a_setting_runs_it_in_the_environment_of_its_kernel(folder, settings):
    path = _write(folder, BLOCK, LOAD, ADD)
    here = Settings(home=settings.home, own_environment=False)
    async with run_notebook(path, here, progress=lambda _: None) as running:
        assert running.record.name == "sums"


async def test_what_uv_says_is_told(folder, settings, monkeypatch):
    uv = folder / "uv"
    uv.write_text('#!/bin/sh\necho "no acme ($*)" >&2\nexit 2\n', encoding="utf-8")
    uv.chmod(0o755)
    monkeypatch.setenv("UV", str(uv))
    with pytest.raises(NotebookError) as caught:
        async with run_notebook(
            _write(folder, BLOCK, LOAD, ADD), settings, progress=lambda _: None
        ):
            pass
    assert "the script block of sums.ipynb lists:\nno acme (add --frozen" in str(caught.value)
    assert list(settings.environments_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "names_us"),
    [
        ('"mcp-notebook"', True),
        ('"pandas", "mcp_notebook[plots]>=0.1"', True),
        ('"mcp-notebook-extra"', False),
        ('"pandas"', False),
    ],
)
def test_a_block_that_names_this_package_decides_about_it(line, names_us):
    assert script_environment._names_us(f"# dependencies = [{line}]") is names_us
