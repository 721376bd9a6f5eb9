"""A notebook's code is read without nbformat, as nbformat reads it."""

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.bridge.headless.notebook_code import hash_code, read_code
from mcp_notebook.bridge.headless.notebook_reader import describe_code, read_notebook
from mcp_notebook.errors import NotebookError

OWN = sorted((Path(__file__).parents[3] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_it_is_the_code_that_a_kernel_is_sent(path):
    assert read_code(path).digest == hash_code(describe_code(read_notebook(path)[1]))


@given(
    st.lists(
        st.tuples(st.text(), st.lists(st.sampled_from(["a", "é"]), max_size=2, unique=True)),
        max_size=3,
    ),
    st.sampled_from([{}, {"kernelspec": {"name": "other", "display_name": "x"}}]),
    st.sampled_from([0, 4, 5]),
    st.booleans(),
)
def test_any_notebook_has_the_same_digest_both_ways(
    tmp_path_factory, cells, metadata, minor, is_split
):
    document = {
        "nbformat": 4,
        "nbformat_minor": minor,
        "metadata": metadata,
        "cells": [
            {
                "cell_type": "code",
                "source": source.splitlines(keepends=True) if is_split else source,
                "metadata": {"tags": tags} if tags else {},
                "outputs": [],
                "execution_count": None,
            }
            for source, tags in cells
        ],
    }
    path = tmp_path_factory.mktemp("any") / "any.ipynb"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert read_code(path).digest == hash_code(describe_code(read_notebook(path)[1]))


def _write(path, *cells, markdown="# The sales of 2024\n\nMore."):
    made = [nbformat.v4.new_code_cell(cell) for cell in cells]
    made.insert(0, nbformat.v4.new_markdown_cell(markdown))
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
    return path


def test_a_notebook_that_has_not_run_is_known_by_its_title_and_its_functions(tmp_path):
    path = _write(
        tmp_path / "a.ipynb",
        "%load_ext mcp_notebook",
        "%%mcp_tool --read-only\n%matplotlib inline\ndef top(n: int):\n    'The best customers.'\n"
        "def _helper(): ...",
        "%%mcp_tool plot_region(region: str = 'EU')\nplot(region)",
        "@mcp_tool(title='x')\nasync def later(): ...",
        "def other(): ...",
        "%%mcp_tool\ndef broken(:",
    )
    assert read_code(path).summarize() == (
        "The sales of 2024. Its code declares top (The best customers), plot_region, later."
    )
    assert read_code(_write(path, "1", markdown="text")).summarize() == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is not JSON"),
        (b'{"nbformat": 4, "cells": [', "it is not JSON"),
        (b"[" * 100_000, "not a notebook"),
        (b"[]", "JSON of another kind"),
        (b'{"a": 1}', "JSON of another kind"),
        (b'{"nbformat": 4, "cells": 1}', "JSON of another kind"),
        (b'{"nbformat": 3, "worksheets": []}', "the old format 3"),
    ],
)
def test_another_file_is_none_and_it_is_said_why(tmp_path, content, said):
    path = tmp_path / "a.ipynb"
    path.write_bytes(content)
    with pytest.raises(NotebookError, match=said):
        read_code(path)


def test_a_lone_surrogate_in_the_code_is_no_unicode_and_one_in_the_title_is_replaced(tmp_path):
    path = tmp_path / "a.ipynb"
    cell = {"cell_type": "code", "source": "'\ud800'"}
    path.write_text(json.dumps({"nbformat": 4, "cells": [cell]}))
    with pytest.raises(NotebookError, match="characters that are not Unicode"):
        read_code(path)
    cell = {"cell_type": "markdown", "source": "# \ud800 and more"}
    path.write_text(json.dumps({"nbformat": 4, "cells": [cell]}))
    assert read_code(path).title == "\ufffd and more"


def test_python_s_nan_in_an_output_does_no_harm(tmp_path):
    path = tmp_path / "a.ipynb"
    path.write_bytes(
        b'\xef\xbb\xbf{"nbformat": 4, "cells": [{"cell_type": "code", "source": "%load_ext '
        b'mcp_notebook", "outputs": [{"data": {"x": NaN}}]}]}'
    )
    assert read_code(path).mentions_us


def test_neither_nbformat_nor_jupyter_client_is_imported():
    code = (
        "import sys; import mcp_notebook.bridge.headless.offers\n"
        "print({'nbformat', 'jupyter_client', 'nbclient'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
