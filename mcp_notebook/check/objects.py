"""What tools do with the notebook's objects: need them, change them, find others in their place.

Pure.
"""

import ast
import inspect
from collections.abc import Collection, Iterator, Mapping
from itertools import zip_longest
from typing import Any, Literal

from mcp_notebook.check.findings import Finding
from mcp_notebook.check.subject import CheckedTool, Function, Subject
from mcp_notebook.kernel.notebook.reassigned_names import describe_reassigned
from mcp_notebook.kernel.schemas.parameters.bound_objects import describe_way, find_objects
from mcp_notebook.kernel.schemas.parameters.callables import NO_DEFAULT, HintedParameter
from mcp_notebook.text.wording import spell_ascii

_USUAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
_CHANGING = frozenset({"insert", "pop", "update"})
"""Methods that change a frame in place."""


def judge_objects(subject: Subject) -> Iterator[Finding]:
    """Yield what clients cannot send, and what later cells replace."""
    cells = {cell.number: cell.source for cell in subject.cells}
    for tool in subject.list_tools():
        if tool.cell is None or tool.function is None:
            continue
        found = find_objects(tool.function, _list_untyped(tool.info.input_schema))
        for reason in found.values():
            advice = describe_way(tool.function.name, _list_parameters(tool), found)
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
    origins = {item.name: item.seen_as for item in _list_parameters(tool)}
    if tool.properties and "argument" not in origins.values() and not tool.function.args.vararg:
        return  # clients send the fields of the only parameter
    names = {name for name, origin in origins.items() if origin == "bound"}
    for name in sorted(names.intersection(_list_changed(tool.function).union(seen))):
        yield tool.make_finding(
            "changes-object",
            "warning",
            reason=f"It changes your `{name}` in place, so each call finds what the last left.",
            advice=f"Begin with a copy (`{name} = {name}.copy()`).",
        )


def _list_untyped(schema: Mapping[str, Any]) -> list[str]:
    """Return the required parameters of a schema that take any value."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    return [
        name
        for name in schema.get("required", ())
        if isinstance(item := properties.get(name), dict)
        and not item.keys() - {"title", "description"}
    ]


def _list_parameters(tool: CheckedTool) -> list[HintedParameter]:
    """Return the parameters of a tool's function as its source and the published schema tell."""
    assert tool.function is not None
    arguments = tool.function.args
    usual = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip_longest(usual[::-1], arguments.defaults[::-1])][::-1]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    parameters = [
        HintedParameter(
            item.arg,
            NO_DEFAULT,
            NO_DEFAULT if default is None else getattr(default, "value", default),
            _find_origin(item, default, tool),
            kind=_USUAL if item in usual else inspect.Parameter.KEYWORD_ONLY,
        )
        for item, default in pairs
    ]
    if arguments.vararg is not None or (pairs and arguments.kwarg is None):
        return parameters
    # Those of the line of a cell that is the function's body, and the keys of a TypedDict.
    own = {spell_ascii(item.arg) for item, _ in pairs}
    others = [name for name in tool.properties if spell_ascii(name) not in own]
    return parameters + [HintedParameter(x, NO_DEFAULT, NO_DEFAULT, "argument") for x in others]


def _find_origin(
    item: ast.arg, default: ast.expr | None, tool: CheckedTool
) -> Literal["argument", "injected", "hidden", "bound"]:
    """Return what gives a parameter its value; clients may know it by another name."""
    hint = "" if item.annotation is None else ast.unparse(item.annotation)
    if "Context" in hint:
        return "injected"
    if {item.arg, spell_ascii(item.arg)} & {*tool.properties}:
        return "argument"
    return "bound" if default is None and "Hidden" not in hint else "hidden"


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
