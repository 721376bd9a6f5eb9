"""The sources of the notebook's cells, for clients that may propose cells.

`note_run` comes on the main thread, all else on any. The file has the order, the Markdown and the
cells that have not run; a cell that has run since is as it ran. Outputs are never part of it, and
what looks like a secret is masked.
"""

from collections import OrderedDict

from mcp_notebook.kernel.notebook.notebook_file import NotebookFile, SavedCell
from mcp_notebook.kernel.safe.text import replace_surrogates
from mcp_notebook.kernel.safe.to_json import format_json
from mcp_notebook.text.redaction import mask_source

MAX_RUN = 2_000
"""Cells that have run whose sources are kept; the least recent are forgotten."""


class CellSources:
    """The sources of one notebook's cells.

    Args:
        file: The notebook's file.
    """

    def __init__(self, file: NotebookFile) -> None:
        self._file = file
        self._run: OrderedDict[str, str] = OrderedDict()
        """By the cells' ids, the least recent first."""

    def note_run(self, cell: str, source: str) -> None:
        """Note what a cell was when it ran."""
        self._run[cell] = source
        self._run.move_to_end(cell)
        if len(self._run) > MAX_RUN:
            self._run.popitem(last=False)

    def find(self, cell: str) -> str | None:
        """Return a cell's source; None if there is no such cell, as far as is known."""
        if cell in self._run:
            return self._run[cell]
        return next((each.source for each in self._file.read_saved() if each.id == cell), None)

    def render(self) -> str:
        """Return the cells as JSON: the id, the type and the source of each."""
        run = dict(self._run)
        cells = [
            SavedCell(id=each.id, type=each.type, source=run.pop(each.id or "", each.source))
            for each in self._file.read_saved()
        ]
        cells += [SavedCell(id=cell, type="code", source=source) for cell, source in run.items()]
        lines = [
            format_json({"id": each.id, "type": each.type, "source": mask_source(each.source)})
            for each in cells
        ]
        return replace_surrogates("[\n" + ",\n".join(lines) + "\n]")
