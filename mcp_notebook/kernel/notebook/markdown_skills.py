"""Skills in the notebook's Markdown cells, which a kernel sees only in the saved file.

Runs on the kernel's main thread, when the extension is loaded and after a cell has run. A Markdown
cell is a skill if it begins with YAML front matter that has a name and a description. The file is
read again once it has changed, so that a skill is as new as the last save before the last run of a
cell. Nothing of the file is executed.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.kernel.tools.skills import (
    SkillFile,
    make_skill_tool,
    read_front_matter,
    read_skill,
)
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry

MAX_NOTEBOOK = 2**26
"""Maximum bytes of a file that is searched for skills; reading one takes about 2 ms for each MB."""
_BEGINS = (b'"---\\n"', b'"---\\n')
"""How a cell with front matter begins in JSON: as the first line of a list, or of one string."""


class _Cell(msgspec.Struct):
    cell_type: str = ""
    source: str | list[str] = ""


class _Notebook(msgspec.Struct):
    cells: list[_Cell] = []


class MarkdownSkills:
    """Declares the skills of a notebook's saved Markdown cells.

    Args:
        registry: The notebook's declarations.
        get_path: Returns the notebook's file; None if it is unknown.
    """

    def __init__(self, registry: ToolRegistry, get_path: Callable[[], Path | None]) -> None:
        self._registry = registry
        self._get_path = get_path
        self._version: tuple[Path, int, int] | None = None
        """The file that was read last, with its time and size."""
        self._declared: dict[str, DeclaredTool] = {}

    def follow(self) -> list[str]:
        """Declare the skills of the saved file, and remove those that it no longer has.

        Returns:
            A sentence for each cell that cannot be a skill.
        """
        path = self._get_path()
        if path is None:
            return []
        try:
            status = path.stat()
            version = path, status.st_mtime_ns, status.st_size
            if version == self._version or status.st_size > MAX_NOTEBOOK:
                return []
            files, notes = _read_skills(path)
        except (OSError, ValueError):  # it is being saved, or is no notebook: the next time
            return []
        self._version = version
        self._declare(files)
        return notes

    def _declare(self, files: dict[str, SkillFile]) -> None:
        with self._registry.batch():
            for name, tool in list(self._declared.items()):
                if name not in files and self._registry.get(name) is tool:
                    self._registry.remove(name)
            declared = {}
            for name, file in files.items():
                present, old = self._registry.get(name), self._declared.get(name)
                if present is not None and present is not old:
                    continue  # a `%%mcp_skill` cell declares it
                same = old is not None and old.info.text == file.text
                tool = old if old is not None and same else make_skill_tool(file)
                self._registry.add(tool)
                declared[name] = tool
            self._declared = declared


def _read_skills(path: Path) -> tuple[dict[str, SkillFile], list[str]]:
    """Return a saved notebook's skills by their paths, and sentences on others.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not JSON, or not a notebook.
    """
    data = path.read_bytes()
    if not any(begin in data for begin in _BEGINS):  # almost always; parsing takes far longer
        return {}, []
    notebook = msgspec.json.decode(data, type=_Notebook)
    files: dict[str, SkillFile] = {}
    notes = []
    for cell in notebook.cells:
        text = cell.source if isinstance(cell.source, str) else "".join(cell.source)
        if cell.cell_type != "markdown" or not text.startswith("---"):
            continue
        try:
            if _is_meant(text):
                file = read_skill("", text)
                files[file.full_path] = file
        except DefinitionError as error:
            notes.append(f"A Markdown cell is not offered as a skill: {error}")
    return files, notes


def _is_meant(text: str) -> bool:
    """Return whether a text's front matter is that of a skill.

    Raises:
        DefinitionError: It seems to be, but is not valid.
    """
    try:
        matter = read_front_matter(text) or {}
    except DefinitionError:
        if "\nname:" in text and "\ndescription:" in text:
            raise
        return False
    return "name" in matter and "description" in matter
