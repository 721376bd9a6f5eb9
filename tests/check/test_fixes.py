"""``--fix`` changes the lines that it corrects, and no other byte of the file."""

import json
import stat
import sys

import pytest
from planted_faults import run_check

from mcp_notebook.check.findings import Edit, Finding
from mcp_notebook.check.fixes import apply_fixes
from mcp_notebook.errors import NotebookError

SOURCE = ["# Zürich\n", "%%mcp_tool\n", "def look():\n", "    return 1"]


def make_finding(cell=2, line=2, old="%%mcp_tool", new="%%mcp_tool --read-only"):
    edit = Edit(cell=cell, line=line, old=old, new=new)
    return Finding(tool="look", rule="r", severity="warning", reason="", advice="", fix=edit)


def write(path, source=SOURCE, *, ascii_only=False, indent=3):
    """Write a notebook in a form of its own, with Windows' line ends and keys in an odd order."""
    code = {"metadata": {}, "source": source, "outputs": [], "cell_type": "code"}
    cells = [
        {"cell_type": "markdown", "source": ["%%mcp_tool\n"], "metadata": {"source": ["x"]}},
        code | {"source": "1"},
        code | {"execution_count": None},
    ]
    document = {"nbformat_minor": 5, "cells": cells, "metadata": {"a": 1.50}, "nbformat": 4}
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only).replace("1.5", "1.50")
    path.write_bytes(text.replace("\n", "\r\n").encode())
    return path.read_bytes()


@pytest.mark.parametrize("indent", [None, 1, 3])
@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("joined", [False, True])
def test_only_the_corrected_line_differs(tmp_path, indent, ascii_only, joined):
    path = tmp_path / "a.ipynb"
    source = "".join(SOURCE) if joined else SOURCE
    before = write(path, source, ascii_only=ascii_only, indent=indent)
    assert apply_fixes(path, [make_finding()]) == [make_finding()]
    # The first is that of the Markdown cell.
    head, markdown, tail = before.partition(b"%%mcp_tool")
    assert path.read_bytes() == head + markdown + tail.replace(
        b"%%mcp_tool", b"%%mcp_tool --read-only"
    )


def test_findings_with_the_same_correction_are_corrected_once(tmp_path):
    path = tmp_path / "a.ipynb"
    write(path)
    assert len(apply_fixes(path, [make_finding(), make_finding()])) == 2
    assert path.read_bytes().count(b"--read-only") == 1


@pytest.mark.parametrize(
    "finding", [make_finding(line=3), make_finding(cell=9), make_finding(old="x")]
)
def test_a_line_that_is_another_one_by_now_is_left(tmp_path, finding):
    path = tmp_path / "a.ipynb"
    before = write(path)
    assert apply_fixes(path, [finding]) == []
    assert path.read_bytes() == before


def test_a_notebook_that_cannot_be_written_stays_as_it_was(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "a.ipynb"
    before = write(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))  # a full disk
    try:
        with pytest.raises(NotebookError, match=r"a\.ipynb was not corrected: .+ Make it writable"):
            apply_fixes(path, [make_finding()])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of Unix")
def test_a_corrected_notebook_keeps_its_permissions_and_a_link_stays_one(tmp_path):
    path, link = tmp_path / "a.ipynb", tmp_path / "link.ipynb"
    write(path)
    path.chmod(0o640)
    link.symlink_to(path)
    apply_fixes(link, [make_finding()])
    assert link.is_symlink()
    assert b"--read-only" in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.slow
def test_the_command_adds_what_is_missing_and_finds_it_no_more(home):
    path = home / "tools.ipynb"
    tool = (
        '%%mcp_tool\ndef count_rows() -> int:\n    """Rows of the table of orders."""\n    return 3'
        '\n\ndef find_name() -> str:\n    """Name of the first customer."""\n    return "Ada"'
    )
    cells = [
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": each,
        }
        for each in ("%load_ext mcp_notebook", tool)
    ]
    document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert "[unsaid-read-only]" in run_check(home, path).stdout
    done = run_check(home, path, "--fix")
    assert done.returncode == 0, done.stdout
    assert "Corrected 1 line" in done.stderr
    assert path.read_text("utf-8") == json.dumps(document).replace(
        "%%mcp_tool", "%%mcp_tool --read-only"
    )
    assert run_check(home, path).stdout.endswith("No findings.\n")
