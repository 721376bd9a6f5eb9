"""Programs that run a notebook anew for each call are told so."""

import os
import subprocess

import nbformat
import pytest
from forked_command import list_words
from live import TIMEOUT, kernel_env

from mcp_notebook.bridge.headless import repeated_starts
from mcp_notebook.bridge.headless.repeated_starts import warn_of_repeated_starts


def said(home, capsys, *notebooks, times=1):
    for _ in range(times):
        warn_of_repeated_starts(home, notebooks)
    return capsys.readouterr().err


def test_the_third_start_by_one_program_within_minutes_says_what_to_do(tmp_path, capsys):
    notebook = tmp_path / "sales.ipynb"
    assert said(tmp_path, capsys, notebook, times=2) == ""
    text = " ".join(said(tmp_path, capsys, notebook).split())
    assert "has started this command 3 times within 10 minutes" in text
    assert "all cells of sales.ipynb run again" in text
    assert "mcp-notebook serve" in text


def test_starts_of_other_notebooks_other_programs_and_long_ago_do_not_count(
    tmp_path, capsys, monkeypatch
):
    for number in range(5):
        assert said(tmp_path, capsys, tmp_path / f"{number}.ipynb") == ""
    notebook = tmp_path / "sales.ipynb"
    with monkeypatch.context() as patched:
        for parent in range(2, 7):
            patched.setattr(os, "getppid", lambda parent=parent: parent)
            assert said(tmp_path, capsys, notebook) == ""
        now = 10**9
        patched.setattr(os, "getppid", lambda: 1)
        for _ in range(5):
            now += repeated_starts.WINDOW
            patched.setattr(repeated_starts.time, "time", lambda now=now: now)
            assert said(tmp_path, capsys, notebook) == ""


@pytest.mark.parametrize("content", [b"", b"{", b'{"starts": 3}', b"\xff"])
def test_a_file_that_cannot_be_read_is_begun_anew(tmp_path, capsys, content):
    (tmp_path / "stdio-starts.json").write_bytes(content)
    assert said(tmp_path, capsys, tmp_path / "a.ipynb", times=2) == ""
    assert "3 times" in said(tmp_path, capsys, tmp_path / "a.ipynb")


def test_a_home_that_cannot_be_written_is_ignored(tmp_path, capsys):
    home = tmp_path / "file"
    home.write_text("")
    assert said(home, capsys, tmp_path / "a.ipynb", times=4) == ""


@pytest.mark.slow
def test_sessions_one_after_another_are_told_on_stderr(home):
    path = home / "sums.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[]), path)
    for number in range(3):
        done = _start(home, "--allow-errors", "~/sums.ipynb")
        assert ("run again" in " ".join(done.stderr.split())) == (number == 2), done.stderr


@pytest.mark.slow
def test_folders_do_not_count_whose_kernels_start_on_call(home):
    (home / "work").mkdir()
    for _ in range(3):
        assert "run again" not in _start(home, "~/work").stderr


def _start(home, *words):
    return subprocess.run(
        list_words("stdio", *words),
        env=kernel_env(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
