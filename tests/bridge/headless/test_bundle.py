"""What needs uv and packages from an index is in .ci/one-line."""

import json
from pathlib import Path

import nbformat
import pytest
from notebook_files import write_notebook

from mcp_notebook.bridge.headless import bundle
from mcp_notebook.bridge.headless.bundle import write_bundle
from mcp_notebook.errors import NotebookError, UntrustedNotebook
from mcp_notebook.settings.settings import Settings

pytestmark = pytest.mark.anyio

BLOCK = '# /// script\n# dependencies = ["acme"]\n# ///'


def _write(folder, *cells, **metadata):
    return write_notebook(folder / "Sales 2015.ipynb", *cells, **metadata)


async def _refuse(path, settings, include=()):
    """Return why a notebook is not packed; nothing may be left of it."""
    target = path.parent / "bundle"
    with pytest.raises(NotebookError) as caught:
        await write_bundle(path, target, include, settings)
    assert not target.exists()
    return str(caught.value)


async def test_a_notebook_without_a_block_is_told_one_with_what_it_imports(folder, settings):
    cells = ["%matplotlib inline\nimport numpy as np, json", "from psutil import Process", "!ls"]
    broken = ("%%mcp_tool\ndef f(: 'broken'", f"deep = {'-' * 9_000}1")
    said = await _refuse(_write(folder, *cells, *broken), settings)
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


@pytest.mark.parametrize(
    ("link", "target", "said"),
    [
        ("data/key", "../../id_rsa", "which is outside"),
        ("data/all", "../..", "which is outside"),
        ("data/deep/key", "../../../id_rsa", "which is outside"),
        ("data/key", "../.env", "which is hidden"),
        ("data/key", "../.git/config", "which is hidden"),
        ("data/loop", ".", "which contains the link itself"),
        ("data/gone", "nowhere", "which does not exist"),
    ],
)
async def test_a_link_below_a_folder_packs_nothing_that_was_not_named(  # noqa: PLR0913, PLR0917
    folder, settings, monkeypatch, link, target, said
):
    monkeypatch.setenv("UV", "/bin/true")
    (folder.parent / "id_rsa").write_text("secret", encoding="utf-8")
    (folder / ".env").write_text("secret", encoding="utf-8")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("secret", encoding="utf-8")
    (folder / "data" / "deep").mkdir(parents=True)
    (folder / link).symlink_to(target)
    problem = await _refuse(_write(folder, BLOCK), settings, [Path("data")])
    assert f"--include data: the link {link} leads to " in problem
    assert said in problem


def test_a_link_to_another_file_of_the_notebooks_folder_is_packed_as_that_file(folder, tmp_path):
    path = _write(folder, BLOCK)
    (folder / "data").mkdir()
    (folder / "b.csv").write_text("b", encoding="utf-8")
    (folder / "data" / "latest.csv").symlink_to("../b.csv")
    bundle._copy(path, json.loads(path.read_text("utf-8")), [Path("data")], tmp_path)
    copy = tmp_path / "data" / "latest.csv"
    assert (copy.read_text("utf-8"), copy.is_symlink()) == ("b", False)


def test_hidden_files_are_packed_only_if_they_are_named(folder, tmp_path, capsys):
    path = _write(folder, BLOCK)
    for name in ("data/a.csv", "data/.env", "data/.git/config", ".streamlit/config", ".netrc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x", encoding="utf-8")
    document = json.loads(path.read_text("utf-8"))
    include = [Path("data"), Path(".streamlit"), Path("data/.git/config")]
    bundle._copy(path, document, include, tmp_path)
    packed = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert packed == {path.name, "data/a.csv", "data/.git/config", ".streamlit/config"}
    said = capsys.readouterr().err
    assert "Hidden files were left out: data/.env, data/.git. --include adds one" in said


def test_outputs_are_packed_only_of_a_notebook_that_is_named(folder, tmp_path):
    output = nbformat.v4.new_output("stream", text="secret")
    cell = nbformat.v4.new_code_cell("print(1)", outputs=[output], execution_count=3)
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"widgets": {"state": "secret"}})
    for name in ("main.ipynb", "more/other.ipynb", "more/kept.ipynb"):
        (folder / name).parent.mkdir(exist_ok=True)
        nbformat.write(notebook, folder / name)
    path = folder / "main.ipynb"
    document = json.loads(path.read_text("utf-8"))
    bundle._copy(path, document, [Path("more"), Path("more/kept.ipynb")], tmp_path)
    for name, is_kept in (("main", False), ("more/other", False), ("more/kept", True)):
        assert ("secret" in (tmp_path / f"{name}.ipynb").read_text("utf-8")) == is_kept
    assert nbformat.read(tmp_path / "main.ipynb", as_version=4).cells[0].source == "print(1)"
    bundle._copy(path, json.loads(path.read_text("utf-8")), [Path("main.ipynb")], tmp_path)
    assert "secret" in (tmp_path / "main.ipynb").read_text("utf-8")
