"""Reads the calls that a notebook has recorded."""

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_notebook.kernel.notebook.recording.replay import RecordedCell, read_cell


def read_call_cells(notebook: Mapping[str, Any]) -> Iterator[RecordedCell]:
    """Yield the recorded calls of a notebook; cells of other kinds are passed over."""
    steps = (step for cell in notebook["cells"] for step in read_cell(cell))
    return (step for step in steps if isinstance(step, RecordedCell))
