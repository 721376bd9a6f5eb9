"""Reads notebook files of any format version without outputs, and explains why one cannot be read.

Runs in the process of the bridge or command. nbformat's exceptions become a `NotebookError`.
"""

import json
import os
from pathlib import Path
from typing import Any

from mcp_notebook.bridge.headless import jsonschema_import  # noqa: F401

# isort: split
import nbformat
from nbformat import NotebookNode
from nbformat.reader import reads as read_any_version

from mcp_notebook.bridge.headless.notebook_code import (
    explain_git,
    find_kernel_name,
    parse_without_outputs,
)
from mcp_notebook.errors import NotebookError


def read_notebook(path: Path) -> tuple[str, NotebookNode]:
    """Return a file's text, and the notebook in the current format, without its outputs.

    Raises:
        NotebookError: The file cannot be read as a notebook.
    """
    if path.is_dir():
        inside = sorted(path.glob("*.ipynb"))
        example = inside[0] if inside else path / "NAME.ipynb"
        raise NotebookError(f"{path} is a folder. Name a notebook in it, for example {example}.")
    content = b""
    try:
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
        return text, _parse(text)
    except FileNotFoundError:
        meant = f"{path.name}.ipynb"
        is_there = os.path.isfile(path.with_name(meant))  # noqa: PTH113 - a name may be too long
        step = f"Did you mean {meant}?" if is_there else "Check its name and folder."
        raise NotebookError(f"The file {path} does not exist. {step}") from None
    except OSError as error:
        raise NotebookError(f"{path} cannot be read: {error.strerror}.") from None
    # nbformat raises all kinds of exceptions for a document of another shape.
    except Exception as error:  # noqa: BLE001
        if git := explain_git(content):
            raise NotebookError(f"{path} cannot be read: {git}.") from None
        problem = str(error).partition("\n")[0] or type(error).__name__
        reason = "it is not JSON" if isinstance(error, json.JSONDecodeError) else problem
        raise NotebookError(
            f"{path} is not a Jupyter notebook ({reason}). Save it from Jupyter as .ipynb."
        ) from None


def list_code_cells(notebook: NotebookNode) -> NotebookNode:
    """Return a notebook with the code cells of another one, without their outputs."""
    cells = [
        nbformat.v4.new_code_cell(cell.source, metadata=cell.get("metadata", {}))
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    copy: NotebookNode = nbformat.v4.new_notebook(cells=cells, metadata=notebook.metadata)
    return copy


def describe_code(notebook: NotebookNode) -> tuple[str, list[tuple[str, Any]]]:
    """Return the parts of a notebook that a kernel runs, to compare two versions."""
    cells = list_code_cells(notebook).cells
    code = [(cell.source, cell.metadata.get("tags", [])) for cell in cells]
    return find_kernel_name(notebook.metadata.get("kernelspec", {})), code


def _parse(text: str) -> NotebookNode:
    document = parse_without_outputs(text)
    if not isinstance(document, dict) or "nbformat" not in document:
        raise ValueError("it has no nbformat version")
    current: Any = nbformat.convert(read_any_version(json.dumps(document)), 4)
    list_code_cells(current)  # raises an error for cells of another shape
    notebook: NotebookNode = current
    return notebook
