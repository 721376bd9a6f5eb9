"""The files of notebooks: their cells and outputs, and files that are not notebooks."""

import json

import pytest
from sample_files import encode_image, write_file

from mcp_notebook.content import Image
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.notebook_files import MAX_PARTS, render_notebook
from mcp_notebook.settings.settings import Settings


def test_a_notebooks_file_is_its_cells_and_what_they_showed(folder, convert):
    from base64 import b64encode  # noqa: PLC0415 - for this test alone

    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["10%\r", "done\n"]},
        {
            "output_type": "display_data",
            "data": {"image/png": b64encode(encode_image()).decode(), "text/plain": "<Figure>"},
        },
        {"output_type": "execute_result", "data": {"text/plain": ["4", "2"]}},
        {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Sales\n", "of 2024"]},
        {"cell_type": "code", "source": "6 * 7", "outputs": outputs},
    ]
    notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    first, shown, last, link = convert(write_file(folder / "a.ipynb", notebook))
    assert first.text == "# Sales\nof 2024\n\n```python\n6 * 7\n```\n\ndone"
    assert shown == Image(encode_image(), "image/png")
    assert last.text == "42\n\nValueError: no"
    assert link.name == "a.ipynb"


@pytest.mark.parametrize("source", ["", "{}", "[1]", '{"cells": [3]}', "no JSON", "[" * 100_000])
def test_a_notebook_that_is_none_is_its_text(folder, to_text, source):
    text = to_text(write_file(folder / "a.ipynb", source), max_result_chars=200_000)
    assert text == (source or "[The file " + str(folder / "a.ipynb") + " is empty.]")


def test_a_notebook_with_many_cells_is_cut():
    cells = [{"cell_type": "markdown", "source": [f"cell {n}"]} for n in range(MAX_PARTS + 10)]
    [piece] = render_notebook(json.dumps({"cells": cells}), Budget.from_settings(Settings()))
    assert piece.text.startswith("cell 0\n\ncell 1\n\n")
    assert piece.text.endswith("[The rest of the notebook's 510 cells is left out.]")


def test_a_notebook_without_cells_says_so():
    [piece] = render_notebook('{"cells": []}', Budget.from_settings(Settings()))
    assert piece.text == "[a notebook without cells]"
