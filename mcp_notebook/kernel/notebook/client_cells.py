"""The notebook's cells as clients read them, and as they name them when they propose one.

`note_run` comes on the main thread, all else on any. The file has the order, the Markdown and the
cells that have not run; a cell that has run since is as it ran. Outputs are never part of it, and
what looks like a secret is masked.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping

from msgspec import structs

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.notebook.notebook_file import NotebookFile, SavedCell
from mcp_notebook.kernel.notebook.proposals import Draft
from mcp_notebook.kernel.safe.text import replace_surrogates
from mcp_notebook.kernel.safe.to_json import format_json
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.text.redaction import mask_source
from mcp_notebook.text.wording import suggest
from mcp_notebook.wire import messages

MAX_RUN = 2_000
"""Cells that have run whose sources are kept; the least recent are forgotten."""


class ClientCells:
    """The cells of one notebook, for clients that may propose some.

    Args:
        file: The notebook's file.
        registry: Its tools.
        get_listed_names: Returns the tools that clients see under other names, by their own names.
    """

    def __init__(
        self,
        file: NotebookFile,
        registry: ToolRegistry,
        get_listed_names: Callable[[], Mapping[str, messages.ListedName]],
    ) -> None:
        self._file = file
        self._registry = registry
        self._get_listed_names = get_listed_names
        self._run: OrderedDict[str, str] = OrderedDict()
        """By the cells' ids, the least recent first."""

    def note_run(self, cell: str, source: str) -> None:
        """Note what a cell was when it ran."""
        self._run[cell] = source
        self._run.move_to_end(cell)
        if len(self._run) > MAX_RUN:
            self._run.popitem(last=False)

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

    def place(self, draft: Draft) -> Draft:
        """Return a draft with the cell that it replaces, or below which it stands.

        Raises:
            ToolError: There is no such tool or cell.
        """
        if draft.tool:
            tool = self._find_tool(draft.tool)
            if tool is None:
                raise self._make_unknown(draft.tool, "no tool")
            base = None if tool.cell is None else self._find_source(tool.cell)
            return structs.replace(draft, after=None, replaces=tool.cell, tool=tool.name, base=base)
        if draft.after is None:
            return draft
        tool = self._find_tool(draft.after)
        if tool is None and self._find_source(draft.after) is None:
            raise self._make_unknown(draft.after, "no tool, and no cell of the id,")
        return draft if tool is None else structs.replace(draft, after=tool.cell)

    def _find_source(self, cell: str) -> str | None:
        if cell in self._run:
            return self._run[cell]
        return next((each.source for each in self._file.read_saved() if each.id == cell), None)

    def _find_tool(self, name: str) -> DeclaredTool | None:
        """Return the author's tool that clients know by this name."""
        others = self._get_listed_names().values()
        own = next((each.tool for each in others if each.name == name), name)
        return next((tool for tool in self._registry.tools if tool.name == own), None)

    def _make_unknown(self, word: str, what: str) -> ToolError:
        names = [tool.name for tool in self._registry.tools]
        close = suggest(word[:100], names)
        hint = f"Did you mean {close!r}?" if close else "The resource with the cells has their ids."
        return ToolError(f"The notebook has {what} {word[:100]!r}. {hint}")
