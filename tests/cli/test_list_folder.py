"""`mcp-notebook list --notebook FOLDER` shows what a folder offers, and runs nothing."""

import json

import pytest
from notebook_files import write_notebook
from served_folder import LOAD, PID
from typer.testing import CliRunner

from mcp_notebook.bridge.headless.notebook_reader import describe_code, read_notebook
from mcp_notebook.bridge.headless.offers import keep_offer
from mcp_notebook.cli import main
from mcp_notebook.wire.messages import ToolInfo

TOP = ToolInfo(
    name="top",
    description="The best.\n\nOf all.",
    input_schema={"type": "object", "properties": {"n": {"default": 3}}},
)


@pytest.fixture
def folder(home, monkeypatch):
    """A folder with a notebook that has run, one that has not, and what is left out."""
    monkeypatch.setenv("HOME", str(home))
    folder = home / "work"
    path = write_notebook(folder / "sales.ipynb", LOAD, PID)
    keep_offer(home / ".mcp-notebook", path, describe_code(read_notebook(path)[1]), "sales", [TOP])
    write_notebook(folder / "sub" / "new.ipynb", LOAD, PID, title="# What is new")
    (folder / "broken.ipynb").write_text("{")
    return folder


def _list(*words):
    return CliRunner().invoke(main.app, ["list", *words])


def test_it_shows_the_last_tools_and_what_has_to_run_and_why_others_are_left_out(folder):
    said = _list("--notebook", str(folder))
    assert said.exit_code == 0
    top, pid, _, new = said.stdout.splitlines()
    assert top == "top\tsales\tn=3\tThe best."
    assert pid == (
        "pid\tsub--new\t\tThe first call runs the notebook 'sub/new.ipynb'. "
        'Its source says: "The kernel\'s process."'
    )
    assert new == "sub--new\tsub--new\t\t[has to run first] What is new."
    assert f"{folder / 'broken.ipynb'} (not listed): It is not JSON" in said.stderr


def test_programs_get_the_same_as_json(folder):
    said = json.loads(_list("--json", "--notebook", str(folder)).stdout)
    assert [(tool["name"], tool["kind"]) for tool in said["tools"]] == [
        ("top", "tool"),
        ("pid", "tool"),
        ("suicide", "tool"),
        ("sub--new", "notebook"),
    ]
    (missing,) = said["missing"]
    assert missing["notebook"] == str(folder / "broken.ipynb")


def test_a_folder_that_declares_nothing_says_what_to_do(home):
    said = _list("--notebook", str(home))
    assert "No notebook in this folder declares a tool. Put `%load_ext mcp_notebook`" in said.stderr
