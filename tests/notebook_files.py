"""The notebook files that tests write."""

from pathlib import Path
from typing import Any

import nbformat


def write_notebook(
    path: Path, *cells: str, title: str = "", kernel: str | None = None, **metadata: Any
) -> Path:
    """Write a notebook with these code cells, in one step, and return its path.

    Args:
        path: Where; folders on the way are made.
        *cells: The sources.
        title: What is in a Markdown cell before them.
        kernel: The name of the kernelspec.
        **metadata: Of the notebook.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    made = [nbformat.v4.new_markdown_cell(title)] if title else []
    made += [nbformat.v4.new_code_cell(cell) for cell in cells]
    if kernel is not None:
        metadata["kernelspec"] = {"name": kernel, "display_name": kernel}
    draft = path.with_suffix(".draft")
    nbformat.write(nbformat.v4.new_notebook(cells=made, metadata=metadata), draft)
    return draft.replace(path)
