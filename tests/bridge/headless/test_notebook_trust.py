"""Trust in notebooks: with real signatures, made by nbformat as ``jupyter trust`` makes them."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from live import kernel_env
from nbformat.sign import NotebookNotary
from trusted_notebooks import sign

import mcp_notebook
from mcp_notebook.bridge.headless.cell_progress import SharedProgress
from mcp_notebook.bridge.headless.notebook import run_notebook
from mcp_notebook.bridge.headless.notebook_trust import check_trust, explain_distrust
from mcp_notebook.errors import NotebookError, UntrustedNotebook
from mcp_notebook.settings.settings import Settings

OWN = Path(mcp_notebook.__file__).parents[1] / "notebooks" / "quickstart.ipynb"
pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("forked_kernels")]


@pytest.fixture
def data(home, monkeypatch):
    """The folder in which Jupyter keeps signatures and the secret that they are made with."""
    for name, value in kernel_env(home).items():
        monkeypatch.setenv(name, value)
    folder = home / "jupyter"
    folder.mkdir()
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(folder))
    return folder


def write(home, *cells, name="a notebook.ipynb", version=4):
    path = home / name
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(made, path, version)
    return path


def reason(path):
    return explain_distrust(path.read_text(encoding="utf-8"))


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# -- what is trusted -------------------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.parametrize("version", [3, 4])
def test_a_notebook_is_trusted_when_it_is_signed_and_until_it_changes(home, data, version):
    path = write(home, "1 + 1", version=version)
    assert reason(path)
    sign(path, data)
    assert reason(path) is None
    path.write_text(path.read_text().replace("1 + 1", "1 + 2"), encoding="utf-8")
    assert reason(path) == "Jupyter has not signed its present content"


@pytest.mark.parametrize("version", [3, 4])
def test_outputs_of_all_kinds_belong_to_what_is_signed(home, data, version):
    new = nbformat.v4
    shown = {"application/json": {"b": [1.5, None, True], "a": "ä"}, "text/html": ["<b>\n", "</b>"]}
    outputs = [
        new.new_output("stream", text=["1\n", "2"]),
        new.new_output("display_data", shown, metadata={"z": 1, "c": {}}),
        new.new_output("execute_result", {"text/plain": "3"}, execution_count=4),
        new.new_output("error", ename="E", evalue="e", traceback=["a", "b"]),
    ]
    cells = [new.new_code_cell("1", outputs=outputs), new.new_markdown_cell("x")]
    cells.append(new.new_code_cell("2", outputs=deepcopy(outputs[:1])))
    path = home / "outputs.ipynb"
    nbformat.write(nbformat.convert(new.new_notebook(cells=cells), version), path, version=version)
    sign(path, data)
    assert reason(path) is None
    path.write_text(path.read_text().replace('"2"', '"5"'), encoding="utf-8")
    assert reason(path) == "Jupyter has not signed its present content"


def test_code_without_outputs_is_not_trusted_by_itself_as_it_is_for_jupyter(home, data):
    path = write(home, "import os")
    notary = NotebookNotary(data_dir=str(data))
    with closing(notary.store):
        assert notary.check_cells(nbformat.read(path, nbformat.NO_CONVERT))
        notary.sign(nbformat.v4.new_notebook())
    assert reason(path) == "Jupyter has not signed its present content"


@pytest.mark.slow
def test_the_command_that_is_advised_makes_a_notebook_trusted(home, data):
    path = write(home, "1 + 1")
    # Where the user has configured another place for signatures, too.
    (home / ".jupyter").mkdir()
    (home / ".jupyter" / "jupyter_notebook_config.py").write_text(
        f"c.NotebookNotary.db_file = {str(home / 'elsewhere.db')!r}"
    )
    subprocess.run([sys.executable, "-m", "jupyter", "trust", str(path)], check=True)
    assert (home / "elsewhere.db").exists()
    assert reason(path) is None


def test_what_says_of_itself_that_it_is_trusted_is_not(home, data):
    sign(write(home, "2 + 2", name="other.ipynb"), data)
    path = write(home, "1 + 1")
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    notebook.metadata["signature"] = "sha256:" + "0" * 64
    notebook.cells[0].metadata["trusted"] = True
    path.write_text(nbformat.v4.nbjson.json.dumps(notebook), encoding="utf-8")
    assert reason(path) == "Jupyter has not signed its present content"


def test_a_notebook_that_jupyter_cannot_sign_is_told_as_such(home, data):
    path = write(home, "1", "2")
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    notebook.cells[1]["id"] = notebook.cells[0]["id"]
    path.write_text(nbformat.v4.nbjson.json.dumps(notebook), encoding="utf-8")
    assert "no id of their own, until Jupyter has saved it" in reason(path)
    path.write_text('{"nbformat": 2, "worksheets": []}', encoding="utf-8")
    assert "too old for a signature" in reason(path)


# -- signatures that cannot be looked up -----------------------------------------------------------


def test_without_any_signature_nothing_is_trusted_and_nothing_made(home, data):
    path = write(home, "1 + 1")
    assert reason(path) == "Jupyter has not signed any here"
    assert files(data) == {}
    data.rmdir()
    assert reason(path) == "Jupyter has not signed any here"
    assert not data.exists()


@pytest.mark.parametrize("content", [b"", b"not a database" * 99], ids=["empty", "corrupt"])
def test_a_broken_database_trusts_nothing_says_why_and_stays_as_it_is(home, data, content):
    path = write(home, "1 + 1")
    sign(path, data)
    (data / "nbsignatures.db").write_bytes(content)
    before = files(data)
    assert f"Jupyter's signatures in {data / 'nbsignatures.db'} cannot be read: " in reason(path)
    assert files(data) == before


@pytest.mark.slow
def test_a_locked_database_trusts_nothing_says_why_and_stays_as_it_is(home, data):
    path = write(home, "1 + 1")
    sign(path, data)
    before = files(data)
    with closing(sqlite3.connect(data / "nbsignatures.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "cannot be read: database is locked" in reason(path)
    assert files(data) == before
    assert reason(path) is None


def test_a_database_and_a_folder_that_may_only_be_read_are_enough(home, data):
    path = write(home, "1 + 1")
    sign(path, data)
    before = files(data)
    (data / "nbsignatures.db").chmod(0o400)
    data.chmod(0o500)
    try:
        assert reason(path) is None
        assert files(data) == before
    finally:
        data.chmod(0o700)


@pytest.mark.skipif(os.name == "nt", reason="needs pipes with a name")
@pytest.mark.parametrize("name", ["nbsignatures.db", "notebook_secret"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(home, data, name):
    path = write(home, "1 + 1")
    sign(path, data)
    (data / name).unlink()
    os.mkfifo(data / name)
    assert reason(path)


@pytest.mark.parametrize(
    "config",
    ["c.NotebookNotary.algorithm = 'none'", "raise SystemExit(3)", "c.NotebookNotary.secret = 5"],
)
def test_a_configuration_that_is_broken_trusts_nothing_and_ends_nothing(home, data, config):
    path = write(home, "1 + 1")
    sign(path, data)
    (home / ".jupyter").mkdir()
    (home / ".jupyter" / "jupyter_notebook_config.py").write_text(config)
    assert "Jupyter's signatures cannot be looked up: " in reason(path)


# -- what is said and refused ----------------------------------------------------------------------


async def _run(path, settings):
    with SharedProgress().show() as progress:
        async with run_notebook(path, settings, progress=progress):
            pass


async def test_a_notebook_that_is_not_trusted_is_told_before_it_runs(home, data, capsys):
    path = write(home, "%load_ext mcp_notebook", '%%mcp_tool\ndef one():\n    "One."')
    await _run(path, Settings(home=home / "state"))
    before, cell, _ = capsys.readouterr().err.partition("cell 1 of 2")
    assert cell
    assert (
        f"{path} is not trusted (Jupyter has not signed any here), and its code runs with your "
        f"rights. Trust it with `jupyter trust '{path}'`, or refuse untrusted notebooks with "
        "MCP_NOTEBOOK_TRUSTED_ONLY=1.\n"
    ) in before
    sign(path, data)
    await _run(path, Settings(home=home / "state", trusted_only=True))
    assert "trust" not in capsys.readouterr().err


@pytest.mark.skipif(not OWN.exists(), reason="the package was installed without its repository")
async def test_a_notebook_of_our_own_repository_is_run_without_a_word_and_its_copy_is_not(
    home, data, capsys
):
    text = OWN.read_text(encoding="utf-8")
    copy = home / "notebooks" / OWN.name
    await check_trust(OWN, text, Settings())
    assert capsys.readouterr().err == ""
    await check_trust(copy, text, Settings())
    assert "is not trusted" in capsys.readouterr().err
    with pytest.raises(UntrustedNotebook):
        await check_trust(OWN, text, Settings(trusted_only=True))


async def test_a_notebook_that_is_not_trusted_is_refused_where_that_is_set(home, data):
    path = write(home, "import pathlib; pathlib.Path('ran').touch()")
    settings = Settings.from_environment({"MCP_NOTEBOOK_TRUSTED_ONLY": "1"}, home=home / "state")
    with pytest.raises(UntrustedNotebook) as refused:
        await _run(path, settings)
    assert isinstance(refused.value, NotebookError)
    assert str(refused.value) == (
        f"{path} is not trusted (Jupyter has not signed any here), and MCP_NOTEBOOK_TRUSTED_ONLY "
        "or --trusted-only is set, so it is not run. Read its code, then trust it with "
        f"`jupyter trust '{path}'`."
    )
    assert not (home / "ran").exists()
