"""What needs uv and packages from an index is in .ci/one-line."""

import json
from pathlib import Path

import nbformat
import pytest

from mcp_notebook.bridge.headless import bundle
from mcp_notebook.bridge.headless.bundle import write_bundle
from mcp_notebook.errors import NotebookError, UntrustedNotebook
from mcp_notebook.settings.settings import Settings

pytestmark = pytest.mark.anyio

BLOCK = '# /// script\n# dependencies = ["acme"]\n# ///'


def _write(folder, *cells, **metadata):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells], metadata=metadata
    )
    path = folder / "Sales 2015.ipynb"
    nbformat.write(notebook, path)
    return path


async def _refuse(path, settings, include=()):
    """Return why a notebook is not packed; nothing may be left of it."""
    target = path.parent / "bundle"
    with pytest.raises(NotebookError) as caught:
        await write_bundle(path, target, include, settings)
    assert not target.exists()
    return str(caught.value)


async def test_a_notebook_without_a_block_is_told_one_with_what_it_imports(folder, settings):
    cells = ["%matplotlib inline\nimport numpy as np, json", "from psutil import Process", "!ls"]
    said = await _refuse(_write(folder, *cells, "%%mcp_tool\ndef f(: 'broken'"), settings)
    listed = said.partition("# dependencies = [\n")[2].splitlines()
    assert [line.partition(">=")[0] for line in listed[:2]] == ['#     "numpy', '#     "psutil']
    assert listed[2:] == ["# ]", "# ///"]


async def test_a_folder_that_is_there_is_left_alone(folder, settings):
    (folder / "kept").mkdir()
    with pytest.raises(NotebookError, match="kept exists already"):
        await write_bundle(_write(folder, BLOCK), folder / "kept", (), settings)


async def test_an_untrusted_notebook_is_not_run_where_only_trusted_ones_are(folder, settings):
    strict = Settings(home=settings.home, trusted_only=True)
    with pytest.raises(UntrustedNotebook):
        await write_bundle(_write(folder, BLOCK), folder / "bundle", (), strict)


@pytest.mark.parametrize("name", ["absent.csv", "..", ".", "../secret", "/etc/hostname"])
async def test_only_files_below_the_notebooks_folder_are_included(
    folder, settings, monkeypatch, name
):
    monkeypatch.setenv("UV", "/bin/true")
    (folder.parent / "secret").write_text("s", encoding="utf-8")
    said = await _refuse(_write(folder, BLOCK), settings, [Path(name)])
    assert "there is no such file below" in said


def test_a_copy_has_the_notebook_and_its_files_but_not_its_kernelspec(folder, tmp_path):
    spec = {"name": "my-env", "display_name": "Mine", "language": "python"}
    path = _write(folder, BLOCK, "1 + 1", kernelspec=spec)
    (folder / "data").mkdir()
    (folder / "data" / "a.csv").write_text("a", encoding="utf-8")
    (folder / "b.csv").write_text("b", encoding="utf-8")
    document = json.loads(path.read_text(encoding="utf-8"))
    bundle._copy(path, document, [Path("data"), Path("b.csv")], tmp_path)
    assert (tmp_path / "data" / "a.csv").read_text(encoding="utf-8") == "a"
    assert (tmp_path / "b.csv").exists()
    copy = nbformat.read(tmp_path / path.name, as_version=4)
    assert "kernelspec" not in copy.metadata
    assert copy.cells[1].source == "1 + 1"


def test_the_manifest_names_the_script_the_tools_and_the_author(folder):
    path = _write(folder, BLOCK, authors=[{"name": "Ada"}])
    notebook = nbformat.read(path, as_version=4)
    tools = [{"name": "rain", "description": "Rain."}]
    manifest = json.loads(bundle._make_manifest(path, notebook, tools))
    assert manifest["name"] == "sales-2015"
    assert manifest["author"] == {"name": "Ada"}
    assert manifest["tools"] == tools
    assert manifest["server"]["mcp_config"]["args"][-1] == "${__dirname}/server.py"
