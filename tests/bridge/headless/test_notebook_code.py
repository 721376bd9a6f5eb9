"""A notebook's code is read without nbformat, as nbformat reads it."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from notebook_files import write_notebook

from mcp_notebook.bridge.headless.notebook_code import hash_code, read_code
from mcp_notebook.bridge.headless.notebook_reader import describe_code, read_notebook
from mcp_notebook.errors import NotebookError

CONFLICT = (
    b'{"nbformat": 4, "cells": [\n<<<<<<< HEAD\n{"cell_type": "raw"}\n=======\n{}\n>>>>>>> b\n]}'
)
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
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
    return write_notebook(path, *cells, title=markdown)


def test_a_notebook_that_has_not_run_is_known_by_its_title_and_its_functions(tmp_path):
    cell = "%%mcp_tool\ndef top(n: int):\n    'The best customers.'\ndef later(): ..."
    code = read_code(_write(tmp_path / "a.ipynb", "%load_ext mcp_notebook", cell))
    assert code.title == "The sales of 2024"
    assert code.summarize() == "Its code declares top (The best customers), later."
    assert read_code(_write(tmp_path / "a.ipynb", "1", markdown="text")).summarize() == ""


@pytest.mark.parametrize("heading", ["# Setup", "## 1. Imports", "# Table of contents:", "text"])
def test_the_heading_of_a_section_is_no_title(tmp_path, heading):
    assert read_code(_write(tmp_path / "a.ipynb", "1", markdown=heading)).title == ""


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
        (CONFLICT, "it has Git's conflict markers, the first in line 2: resolve the conflict"),
        (POINTER, "a pointer of Git LFS, not the notebook itself: run `git lfs pull`"),
    ],
)
def test_another_file_is_none_and_it_is_said_why(tmp_path, content, said):
    path = tmp_path / "a.ipynb"
    path.write_bytes(content)
    with pytest.raises(NotebookError, match=said):
        read_code(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (CONFLICT, "has Git's conflict markers, the first in line 2: resolve the conflict."),
        (POINTER, "is a pointer of Git LFS, not the notebook itself: run `git lfs pull`."),
    ],
)
def test_what_git_has_made_of_a_notebook_is_named_when_it_is_run(tmp_path, content, said):
    path = tmp_path / "a.ipynb"
    path.write_bytes(content)
    with pytest.raises(NotebookError) as caught:
        read_notebook(path)
    assert str(caught.value) == f"{path} cannot be read: it {said}"


@pytest.mark.parametrize("extra", ["1", "NaN"])  # msgspec reads no NaN
def test_outputs_take_no_memory_when_a_notebook_is_read(tmp_path, extra):
    # nbformat would validate each output.
    cell = nbformat.v4.new_code_cell("1 + 1") | {
        "outputs": [
            {"output_type": "stream", "name": "stdout", "text": f"{number}\n"}
            for number in range(5_000)
        ]
    }
    path = tmp_path / "a.ipynb"
    document = nbformat.v4.new_notebook(metadata={"extra": 8_151}) | {"cells": [cell]}
    content = json.dumps(document)
    path.write_text(content.replace("8151", extra))
    nbformat.reads(content, 4)  # imports what it needs
    for read in (read_code, read_notebook):
        tracemalloc.start()
        try:
            found = read(path)
            assert tracemalloc.get_traced_memory()[1] < 5 * len(content)
        finally:
            tracemalloc.stop()
    assert found[1].cells[0].outputs == []


def test_a_lone_surrogate_in_the_code_is_no_unicode_and_one_in_the_title_is_replaced(tmp_path):
    path = tmp_path / "a.ipynb"
    cell = {"cell_type": "code", "source": "'\ud800'"}
    path.write_text(json.dumps({"nbformat": 4, "cells": [cell]}))
    with pytest.raises(NotebookError, match="characters that are not Unicode"):
        read_code(path)
    cell = {"cell_type": "markdown", "source": "# \ud800 and more"}
    path.write_text(json.dumps({"nbformat": 4, "cells": [cell]}))
    assert read_code(path).title == "\ufffd and more"


def test_neither_nbformat_nor_jupyter_client_is_imported():
    code = (
        "import sys; import mcp_notebook.bridge.headless.offers\n"
        "print({'nbformat', 'jupyter_client', 'nbclient'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
