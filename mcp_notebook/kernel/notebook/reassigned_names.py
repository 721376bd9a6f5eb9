"""Finds the names that a cell under ``%%mcp_tool name(...)`` reads, and that later cells set again.

Runs on the kernel's main thread, and in the process of ``mcp-notebook check``. Pure.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

_OTHER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.comprehension)
_SHOWN = 3
"""Cells that a sentence names."""
_NO_CELL_CODE = re.compile(r"%%(?!(?:time|capture)\b|mcp_tool[^(\n]*(?:\n|$))")
"""Cells whose code sets no variable of the notebook: tools' bodies, and other languages."""


def parse_cell(source: str) -> ast.Module | None:
    """Return a cell's code, with the lines' numbers of the cell; None if it is not Python.

    Magics and shell lines are read as empty lines, so ``%%mcp_tool`` leaves its functions.
    """
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()]
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def describe_reassigned(
    cells: Mapping[int, str], place: int, parameters: Collection[str]
) -> Iterator[str]:
    """Yield a sentence for each name that is set before a tool's body and again after it.

    Args:
        cells: The sources of the code cells, by number; a later copy of one before does not count.
        place: The number of the tool's cell; of one that is no body, nothing is said.
        parameters: The tool's.
    """
    if not _NO_CELL_CODE.match(cells[place]):
        return
    read = _list_read(cells[place]).difference(parameters)
    earlier = {source for number, source in cells.items() if number < place}
    names = {name for source in earlier for name in _list_assigned(source)}
    later = {
        str(number): _list_assigned(source)
        for number, source in cells.items()
        if number > place and source not in earlier
    }
    for name in sorted(names & read):
        numbers = [number for number, assigned in later.items() if name in assigned]
        if numbers:
            more = [f"{len(numbers) - _SHOWN} more"] if len(numbers) > _SHOWN else []
            where = f"cell{'s' * (len(numbers) > 1)} {' and '.join([*numbers[:_SHOWN], *more])}"
            yield f"`{name}` is assigned again in {where}: calls get what is set there."


def _list_read(body: str) -> set[str]:
    """Return the names that a body reads from the notebook."""
    tree = parse_cell(body) or ast.Module([], [])
    updated = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for name in _list_names(node, ast.Store) & _list_names(node.value, ast.Load)
    }
    return (_list_names(tree, ast.Load) - _list_names(tree, ast.Store)) | updated


def _list_names(tree: ast.AST, context: type[ast.expr_context]) -> set[str]:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, context)}


@lru_cache(maxsize=1_000)  # each body of a notebook asks for all its cells
def _list_assigned(cell: str) -> frozenset[str]:
    """Return the variables that a cell sets, without imports and definitions."""
    tree = None if _NO_CELL_CODE.match(cell) else parse_cell(cell)
    waiting: list[ast.AST] = [] if tree is None else [tree]
    assigned = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            assigned.add(node.id)
        waiting += [
            each for each in ast.iter_child_nodes(node) if not isinstance(each, _OTHER_SCOPES)
        ]
    return frozenset(assigned)
