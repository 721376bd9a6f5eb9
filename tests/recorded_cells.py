"""Reads the calls that a notebook has recorded."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import ValidationError, convert

from mcp_notebook.kernel.notebook.recording.call_cells import KEY, RecordedCall


@dataclass(frozen=True)
class RecordedCell:
    """A recorded call with what it returned."""

    number: int
    """Its place among the recorded calls of the file, from 1."""
    call: RecordedCall
    outputs: list[dict[str, Any]]
    """In nbformat's form."""


def read_call_cells(notebook: Mapping[str, Any]) -> Iterator[RecordedCell]:
    """Yield the recorded calls of a notebook; cells of other kinds are passed over.

    Args:
        notebook: In nbformat's form, checked by nbformat.
    """
    number = 0
    for cell in notebook["cells"]:
        metadata = cell["metadata"].get(KEY)
        if cell["cell_type"] != "code" or not isinstance(metadata, dict):
            continue
        try:
            arguments = metadata["arguments"]
            if isinstance(arguments, str):
                arguments = json.loads(arguments)
            call = convert(metadata | {"arguments": arguments}, RecordedCall)
        except (KeyError, ValidationError):
            continue
        number += 1
        yield RecordedCell(number, call, cell["outputs"])
