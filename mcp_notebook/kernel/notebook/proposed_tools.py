"""The tools that a proposed cell would declare, as far as its text tells; nothing of it runs.

Pure. Their names and descriptions are judged before a person is asked, by the rules of ``check``.
"""

import ast
from collections.abc import Iterator
from typing import Any

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.notebook.cells import find_comment
from mcp_notebook.kernel.notebook.hidden_text import parse_source
from mcp_notebook.kernel.notebook.magic_line import build_options, build_parser, read_line
from mcp_notebook.kernel.schemas.docstrings import parse_docstring
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.kernel.tools.tool_words import judge_tool_words

_MAGIC = "%%mcp_tool"
_NO_TOOL = (
    "The cell declares no tool: begin it with `%%mcp_tool` and define a function with type hints "
    "and a docstring below."
)
_PLAIN = ("str", "int", "float", "bool", "list", "dict", "tuple", "set", "object", "Any", "bytes")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def list_tool_problems(source: str, tree: ast.Module, *, is_tool: bool) -> Iterator[str]:
    """Yield what is wrong with the tools of a cell, as sentences for its author, a model.

    Args:
        source: The cell.
        tree: Its code, with magics as calls.
        is_tool: Whether it must declare one.
    """
    options, body, script = ToolOptions(), None, None
    head, _, rest = source.lstrip("\n").partition("\n")
    if head.split(" ")[0].rstrip() == _MAGIC:
        try:
            line = read_line(build_parser(), head[len(_MAGIC) :].strip(), rest, str)
            options, body = build_options(line.options), line.body
            tree = parse_source(body)
            if line.signature is not None:
                script = tree
                tree = parse_source(f"def {line.signature.name}{line.signature.rest}: ...")
        except (DefinitionError, SyntaxError) as error:
            yield str(error)
            return
    functions = [
        node
        for node in tree.body
        if isinstance(node, _Function)
        and (
            any(map(_is_mark, node.decorator_list))
            if body is None
            else script is not None or not node.name.startswith("_")
        )
    ]
    if is_tool and not functions:
        yield _NO_TOOL
    for function in functions:
        doc = parse_docstring(ast.get_docstring(function))
        text = options.description or doc.description
        if script is not None and not text:
            text = ast.get_docstring(script) or find_comment(body or "") or ""
        described = doc.parameters or parse_docstring(text).parameters
        properties = {
            each.arg: {"description": described[each.arg]}
            if described.get(each.arg)
            else _describe_hint(each.annotation)
            for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
            if not (isinstance(each.annotation, ast.Name) and each.annotation.id == "Context")
        }
        name = options.name or function.name
        for problem in judge_tool_words(name, text, properties):
            yield f"`{name}`: {problem.reason} {problem.advice}"


def _is_mark(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(target, "id", getattr(target, "attr", "")) == "mcp_tool"


def _describe_hint(hint: ast.expr | None) -> dict[str, Any]:
    """Return what a parameter's hint says of it, as far as the rules look."""
    if isinstance(hint, ast.Subscript):
        word = getattr(hint.value, "id", getattr(hint.value, "attr", ""))
        if word == "Literal":
            return {"enum": []}
        if word == "Annotated":
            has_text = any(
                isinstance(node, ast.Constant) and isinstance(node.value, str)
                for node in ast.walk(hint.slice)
            )
            return {"description": ""} if has_text else {}
    is_own = isinstance(hint, ast.Name) and hint.id not in _PLAIN
    return {"$ref": ""} if is_own or isinstance(hint, ast.Attribute) else {}
