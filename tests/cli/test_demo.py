"""What `mcp-notebook demo` needs, and what it leaves alone. It is opened in tests/browser."""

from importlib.util import find_spec

import nbformat
import pytest
from live import kernel_env
from typer.testing import CliRunner

from mcp_notebook.bridge.headless.notebook_trust import explain_distrust
from mcp_notebook.cli import demo, main
from mcp_notebook.errors import NotebookError


def run(*arguments):
    return CliRunner().invoke(main.app, ["demo", *arguments], catch_exceptions=True)


@pytest.fixture
def started(monkeypatch, tmp_path):
    """The commands that would replace this process."""
    commands = []
    monkeypatch.setattr(demo.os, "execv", lambda _, command: commands.append(command))
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for name in demo._PACKAGES:  # JupyterLab comes with the extra `browser`
        if find_spec(name) is None:
            (stubs / f"{name}.py").touch()
    monkeypatch.syspath_prepend(stubs)
    return commands


def test_the_copy_is_trusted_and_an_earlier_one_stays_as_it_is(started, home, monkeypatch):
    for name, value in kernel_env(home).items():
        monkeypatch.setenv(name, value)
    folder = home / "a folder"
    assert run(str(folder)).exit_code == 0
    copy = folder / "demo.ipynb"
    assert any("%%mcp_tool" in cell.source for cell in nbformat.read(copy, as_version=4).cells)
    assert explain_distrust(copy.read_text(encoding="utf-8")) is None
    copy.write_text("{}")
    monkeypatch.setattr(demo.os, "geteuid", lambda: 1000, raising=False)
    answer = run(str(folder), "--no-browser")
    assert answer.stderr == f"Starting JupyterLab on {copy}. Press Ctrl-C twice to stop it.\n"
    assert copy.read_text() == "{}"
    assert [command[2:] for command in started] == [
        ["jupyterlab", str(copy)],
        ["jupyterlab", "--no-browser", "--LabApp.default_url=/lab/tree/demo.ipynb", str(copy)],
    ]

    monkeypatch.setattr(demo.os, "geteuid", lambda: 0)
    assert f"as root, start it with `jupyter lab --allow-root '{copy}'`." in run(str(folder)).stderr


def test_a_place_that_cannot_be_written_to_is_an_error_with_the_next_step(started, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "taken" / "demo.ipynb").mkdir(parents=True)
    for folder, reason in (("file", "File exists"), ("taken", "Is a directory")):
        error = run(str(tmp_path / folder)).exception
        assert isinstance(error, NotebookError)
        assert f"{reason}. Name another folder: `mcp-notebook demo FOLDER`." in str(error)
    assert started == []


def test_missing_packages_are_named_with_the_line_that_installs_them():
    with pytest.raises(NotebookError) as caught:
        demo._check_packages(("os", "no_lab", "no_plots"))
    assert "that are not installed: no_lab, no_plots." in str(caught.value)
    assert "-m pip install no_lab no_plots`" in str(caught.value)
