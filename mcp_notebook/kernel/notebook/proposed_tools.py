"""The tools that a proposed cell would declare, as far as its text tells; nothing of it runs.

Pure. Their names and descriptions are judged before a person is asked, by the rules of ``check``.
"""

import ast
import builtins
from collections.abc import Iterator
from textwrap import indent

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.notebook.cells import find_comment
from mcp_notebook.kernel.notebook.hidden_text import parse_source
from mcp_notebook.kernel.notebook.magic_line import build_options, build_parser, read_line
from mcp_notebook.kernel.schemas.docstrings import parse_docstring
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.kernel.tools.tool_words import judge_tool_words

_MAGIC = "%%mcp_tool"


def list_tool_problems(source: str, tree: ast.Module, *, is_tool: bool) -> Iterator[str]:
    """Yield what is wrong with the tools of a cell, as sentences for its author, a model.

    Args:
        source: The cell.
        tree: Its code, with magics as calls.
        is_tool: Whether it must declare one.
    """
    options, comment, is_marked = ToolOptions(), None, False
    head, _, rest = source.lstrip("\n").partition("\n")
    if head.split(" ")[0].rstrip() == _MAGIC:
        try:
            line = read_line(build_parser(), head[len(_MAGIC) :].strip(), rest, str)
            options, body, is_marked = build_options(line.options), line.body, True
            if (made := line.signature) is not None:  # the cell is its body
                comment = find_comment(body)
                body = f"async def {made.name}{made.rest}:\n{indent(body, ' ')}\n pass"
            tree = parse_source(body)
        except (DefinitionError, SyntaxError) as error:
            yield str(error)
            return
    functions = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (
            not node.name.startswith("_") if is_marked else any(map(_is_mark, node.decorator_list))
        )
    ]
    if is_tool and not functions:
        yield (
            "The cell declares no tool: begin it with `%%mcp_tool` and define a function with type "
            "hints and a docstring below."
        )
    for function in functions:
        doc = parse_docstring(ast.get_docstring(function) or comment)
        parameters = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
        unknown: dict[str, object] = {
            each.arg: {}
            for each in parameters
            if not (doc.parameters.get(each.arg) or _tells(each.annotation))
        }
        name = options.name or function.name
        for problem in judge_tool_words(name, options.description or doc.description, unknown):
            yield f"`{name}`: {problem.reason} {problem.advice}"


def _is_mark(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(target, "id", getattr(target, "attr", "")) == "mcp_tool"


def _tells(hint: ast.expr | None) -> bool:
    """Return whether a hint says more of a parameter than a built-in type."""
    names = {node.id for node in ast.walk(hint or ast.Pass()) if isinstance(node, ast.Name)}
    return bool(names - vars(builtins).keys() - {"Any", "Optional", "Union"})
