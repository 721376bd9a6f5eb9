"""The command that stores what the demo notebooks show: what it changes and what it compares."""

from base64 import b64encode

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from run_notebooks import differences, main, run_notebook

STATUS = "import os\nprint(os.getcwd(), object())\nos.environ['MCP_NOTEBOOK_KERNEL_ID']"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "small.ipynb"
    cells = [new_code_cell("number = 1\nnumber", id="first"), new_code_cell(STATUS, id="second")]
    nbformat.write(new_notebook(cells=cells), path)
    return path


def test_a_run_leaves_the_file_and_returns_what_its_cells_showed(path):
    before = path.read_bytes()
    seen = []
    notebook = run_notebook(path, lambda: seen.append(1))
    assert path.read_bytes() == before
    assert len(seen) == 2
    assert notebook.cells[0].outputs[0].data["text/plain"] == "1"


@pytest.mark.slow
def test_what_belongs_to_the_machine_or_the_run_is_not_stored(path):
    (stream, result) = run_notebook(path).cells[1].outputs
    assert stream.text == ". <object object at 0x7f0000000000>\n"
    assert result.data["text/plain"] == repr("0" * 32)


@pytest.mark.slow
def test_the_command_stores_outputs_and_a_second_run_changes_nothing(path):
    main([str(path)])
    stored = path.read_bytes()
    assert b'"execution_count": 2' in stored
    main([str(path)])
    assert path.read_bytes() == stored


def _notebook(*outputs):
    return new_notebook(cells=[new_code_cell("f()", id="cell", outputs=[*outputs])])


def _picture(width, height, rest=b""):
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return new_output("display_data", {"image/png": b64encode(header + rest).decode()})


def _text(text):
    return new_output("stream", name="stdout", text=text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([_text("one")], [_text("two")]),
        ([_text("one")], []),
        ([], [_text("one")]),
        ([_picture(700, 300)], [_picture(700, 330)]),
        ([_picture(700, 300)], [_text("one")]),
        ([_text("one"), _picture(7, 3)], [_picture(7, 3), _text("one")]),
    ],
)
def test_outputs_that_say_something_else_differ(old, new):
    (found,) = differences(_notebook(*old), _notebook(*new))
    assert found.startswith("cell: ")
