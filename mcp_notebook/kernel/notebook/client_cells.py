"""The notebook's cells as clients read them, and as they name them when they propose one.

`run` is written on the main thread, and read on any. The file has the order, the Markdown and the
cells that have not run; a cell that has run since is as it ran. Outputs are never part of it, and
what looks like a secret is masked.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct, field, structs

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.notebook.notebook_file import NotebookFile
from mcp_notebook.kernel.safe.text import replace_surrogates
from mcp_notebook.kernel.safe.to_json import format_json
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.text.redaction import mask_source
from mcp_notebook.text.wording import suggest
from mcp_notebook.wire import messages


class ClientCells(Struct, eq=False):
    """The cells of one notebook, for clients that may propose some."""

    file: NotebookFile
    registry: ToolRegistry
    """The notebook's tools."""
    get_listed_names: Callable[[], Mapping[str, messages.ListedName]]
    """Returns the tools that clients see under other names, by their own names."""
    run: dict[str, str] = field(default_factory=dict)
    """What the cells were when they ran last, by their ids."""

    def read(self) -> str:
        """The sources of the notebook's cells, without outputs: the id, type and text of each.

        The file's cells in order, as they ran last; then those that the file lacks.
        """
        run = dict(self.run)
        cells = [
            each | {"source": run.pop(each["id"], each["source"])}
            for each in self.file.read_saved()
        ]
        cells += [{"id": cell, "type": "code", "source": source} for cell, source in run.items()]
        lines = [format_json(each | {"source": mask_source(each["source"])}) for each in cells]
        return replace_surrogates("[\n" + ",\n".join(lines) + "\n]")

    def place(self, shown: messages.OpenProposal) -> messages.OpenProposal:
        """Return a proposal with the cell that it replaces, or below which it stands.

        Raises:
            ToolError: There is no such tool or cell.
        """
        name = shown.tool or shown.after
        tool = None if name is None else self._find_tool(name)
        if tool is not None and shown.tool:
            base = None if tool.cell is None else self._find_source(tool.cell)
            return structs.replace(shown, after=None, replaces=tool.cell, tool=tool.name, base=base)
        if tool is not None:
            return structs.replace(shown, after=tool.cell)
        if name is not None and (shown.tool or not self._has_cell(name)):
            what = "no tool" if shown.tool else "no tool, and no cell of the id,"
            close = suggest(name[:100], [each.name for each in self.registry.tools])
            hint = f" Did you mean {close!r}?" if close else ""
            raise ToolError(f"The notebook has {what} {name[:100]!r}.{hint}")
        return shown

    def _has_cell(self, cell: str) -> bool:
        """Return whether a cell is there; one that loaded us may be known by its tool only."""
        tools = self.registry.tools if cell not in self.registry.deleted_cells else ()
        return any(tool.cell == cell for tool in tools) or self._find_source(cell) is not None

    def _find_source(self, cell: str) -> str | None:
        if cell in self.registry.deleted_cells:
            return None
        saved = {each["id"]: each["source"] for each in self.file.read_saved()}
        return (saved | self.run).get(cell)

    def _find_tool(self, name: str) -> DeclaredTool | None:
        """Return the author's tool that clients know by this name."""
        others = self.get_listed_names().values()
        own = next((each.tool for each in others if each.name == name), name)
        return next((tool for tool in self.registry.tools if tool.name == own), None)
