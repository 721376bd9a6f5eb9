"""``mcp-notebook check`` as people and programs run it."""

import json
import subprocess

import nbformat
import pytest
from forked_command import list_words
from live import kernel_env

ADD = '%%mcp_tool --read-only\ndef add(a: int, b: int = 2) -> int:\n    "Add."\n    return a + b'


def write_notebook(folder, *cells):
    """Write a notebook that loads the extension and has these code cells."""
    cells = ["%load_ext mcp_notebook", *cells]
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(document, folder / "tools.ipynb")
    return folder / "tools.ipynb"


def check(home, *words, **options):
    """Run the command on a notebook."""
    return subprocess.run(
        list_words("check", *map(str, words)),
        env=kernel_env(home) | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        **options,
    )


def test_a_notebook_without_faults_is_clean(home):
    done = check(home, write_notebook(home, ADD), "--json")
    findings = json.loads(done.stdout)["findings"]
    assert [finding for finding in findings if finding["severity"] != "note"] == []
    assert done.returncode == 0


@pytest.mark.parametrize("cells", [[], ["1 / 0"]], ids=["no tools", "a cell that fails"])
def test_a_notebook_that_cannot_be_checked_ends_with_2(home, cells):
    done = check(home, write_notebook(home, *cells))
    assert done.returncode == 2
    assert "tools.ipynb" in done.stderr
