"""Finds parameters that go directly into code, a shell or the text of a SQL statement.

Runs in the process of the command. Pure. Only what stands in one expression is found: a parameter
in the argument of such a call, as it is or formatted into a text. What goes through variables or
other functions is left to the author, and to tools like Bandit.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mcp_notebook.check.findings import Finding
from mcp_notebook.check.subject import CheckedTool, Function, Subject

_CODE = frozenset({"eval", "exec", "builtins.eval", "builtins.exec"})
_SHELLS = frozenset({"os.system", "os.popen", "subprocess.getoutput"})
_SQL = frozenset({"execute", "executemany", "executescript", "sql", "read_sql", "read_sql_query"})
"""Functions and methods that take a statement first."""
_WRAPPERS = frozenset({"text", "dedent", "strip"})
"""Functions and methods that return the text that they take."""
_CHECKED = frozenset({"enum", "const", "pattern", "format"})
"""Keywords of a schema that leave a client few texts."""
_ADVICE: Mapping[str, str] = {
    "client-code": "Choose between functions by name, or parse the text with `ast.literal_eval`.",
    "client-shell": "Pass a list of words without `shell=True`, and check the parameter.",
    "client-sql": "Pass the value as a parameter of the statement, and choose names from a list.",
}


def find_direct_uses(subject: Subject) -> Iterator[Finding]:
    """Yield where text from a client becomes code, a shell's line or part of a statement."""
    for tool in subject.tools:
        if tool.function is not None:
            yield from _find_in_tool(tool, tool.function)


def _find_in_tool(tool: CheckedTool, function: Function) -> Iterator[Finding]:
    parameters = _list_open_texts(tool, function)
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        rule = _find_rule(node)
        name = _find_parameter(node.args[0], parameters, is_formatted=rule != "client-sql")
        if rule is None or name is None:
            continue
        finding = tool.make_finding(
            rule,
            "error",
            reason=f"`{name}`, which clients send, goes into `{ast.unparse(node.func)}`: a model "
            "can be made to send anything.",
            advice=_ADVICE[rule],
        )
        yield replace(finding, line=node.lineno)


def _list_open_texts(tool: CheckedTool, function: Function) -> frozenset[str]:
    """Return the parameters that can be any text."""
    arguments = (node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg))
    names = {*tool.properties, *arguments}
    return frozenset(name for name in names if _is_open(tool.properties.get(name, {})))


def _is_open(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return True
    options = schema.get("anyOf")
    if isinstance(options, list):
        return any(map(_is_open, options))
    return schema.get("type", "string") == "string" and not schema.keys() & _CHECKED


def _find_rule(call: ast.Call) -> str | None:
    name = ast.unparse(call.func)
    if name in _CODE:
        return "client-code"
    is_shell = any(
        each.arg == "shell" and isinstance(each.value, ast.Constant) and each.value.value
        for each in call.keywords
    )
    if name in _SHELLS or (is_shell and name.startswith("subprocess.")):
        return "client-shell"
    return "client-sql" if name.rpartition(".")[2] in _SQL else None


def _find_parameter(
    node: ast.expr, parameters: frozenset[str], *, is_formatted: bool
) -> str | None:
    """Return the parameter that an expression is, or formats into a text."""
    if isinstance(node, ast.Name):
        return node.id if is_formatted and node.id in parameters else None
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _WRAPPERS:
        texts = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return _find_first([*node.args, *texts], parameters, is_formatted=is_formatted)
    return _find_first(_list_parts(node), parameters, is_formatted=True)


def _list_parts(node: ast.expr) -> list[ast.expr]:
    """Return what an expression formats into a text."""
    match node:
        case ast.JoinedStr(values=values):
            return [each.value for each in values if isinstance(each, ast.FormattedValue)]
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
            return [left, right]
        case ast.Tuple(elts=items):
            return items
        case ast.Call(func=ast.Attribute(attr="format"), args=args, keywords=keywords):
            return [*args, *(each.value for each in keywords)]
    return []


def _find_first(
    nodes: list[ast.expr], parameters: frozenset[str], *, is_formatted: bool
) -> str | None:
    found = (_find_parameter(node, parameters, is_formatted=is_formatted) for node in nodes)
    return next((name for name in found if name is not None), None)
