"""What tools do with the notebook's objects: need them, change them, find others in their place.

Pure.
"""

import ast
from collections.abc import Collection, Iterator

from mcp_notebook.check.findings import Finding
from mcp_notebook.check.subject import CheckedTool, Function, Subject
from mcp_notebook.kernel.notebook.reassigned_names import describe_reassigned
from mcp_notebook.kernel.schemas.parameters.bound_objects import explain_objects
from mcp_notebook.text.wording import spell_ascii

_CHANGING = frozenset({"insert", "pop", "update"})
"""Methods that change a frame in place."""


def judge_objects(subject: Subject) -> Iterator[Finding]:
    """Yield what clients cannot send, and what later cells replace."""
    cells = {cell.number: cell.source for cell in subject.cells}
    for tool in subject.list_tools():
        if tool.cell is None or tool.function is None:
            continue
        function, schema = tool.function, tool.info.input_schema
        for reason, advice in explain_objects(function, schema, function.name):
            yield tool.make_finding("object-parameter", "error", reason=reason, advice=advice)
        for text in describe_reassigned(cells, tool.cell.number, tool.properties):
            advice = "Give one of them another name."
            yield tool.make_finding("reassigned-name", "warning", reason=text, advice=advice)


def judge_changes(tool: CheckedTool, seen: Collection[str]) -> Iterator[Finding]:
    """Yield the objects that a tool gets from the notebook and changes in place.

    Args:
        tool: The tool.
        seen: The variables of which trials have seen it.
    """
    if tool.function is None:
        return
    names = {
        node.arg
        for node in ast.walk(tool.function.args)
        if isinstance(node, ast.arg) and not _is_from_elsewhere(node, tool)
    }
    changed = _list_changed(tool.function).union(seen)
    for name in sorted(names.intersection(changed).difference(tool.properties)):
        yield tool.make_finding(
            "changes-object",
            "warning",
            reason=f"It changes your `{name}` in place, so each call finds what the last left.",
            advice=f"Begin with a copy (`{name} = {name}.copy()`).",
        )


def _is_from_elsewhere(parameter: ast.arg, tool: CheckedTool) -> bool:
    """Return whether a parameter comes from the client under another name, or from the server."""
    hint = "" if parameter.annotation is None else ast.unparse(parameter.annotation)
    return spell_ascii(parameter.arg) in tool.properties or "Context" in hint or "Hidden" in hint


def _list_changed(function: Function) -> set[str | None]:
    """Return the names whose values a function plainly changes in place, and does not set."""
    nodes = list(ast.walk(function))
    stored = [node for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)]
    owners = [
        node.func.value
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr in _CHANGING or "inplace=True" in map(ast.unparse, node.keywords))
    ]
    own = {node.id for node in stored if isinstance(node, ast.Name)}
    return {*map(_find_root, (*stored, *owners))} - own


def _find_root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
