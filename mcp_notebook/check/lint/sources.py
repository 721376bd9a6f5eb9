"""Finds the tools in a notebook's source, and what else the rules need to know of it.

Runs in the process of the command. Pure: cells are parsed and
never run. A tool that only running code could find, such as one of a loop with `registry.add`, is
not among them; `check` knows it from the kernel.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from IPython.core.error import UsageError

from mcp_notebook.check.findings import Finding, Severity
from mcp_notebook.check.subject import CodeCell
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.notebook.magic_line import (
    Line,
    Signature,
    build_options,
    build_parser,
    read_line,
    read_resource_line,
)
from mcp_notebook.kernel.tools.resource_templates import make_resource_name, read_variables
from mcp_notebook.wire import messages

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_MAGIC = re.compile(r"\s*%%mcp_(tool|prompt|resource)(?:[ \t]+(.*))?$")
_LINE = re.compile(r"[ \t]*%mcp_(tool|prompt)[ \t]+(.+)$", re.MULTILINE)
_DECORATORS: Mapping[str, messages.Kind] = {
    "mcp_notebook.mcp_tool": "tool",
    "mcp_notebook.mcp_prompt": "prompt",
    "mcp_notebook.mcp_resource": "resource",
}
_PYTHON_MAGICS = frozenset(("capture", "time", "timeit", "prun"))
"""Cell magics below which there is Python."""
_CELL_MAGIC = re.compile(r"\s*%%(\w+).*\n?")


@dataclass(frozen=True, kw_only=True)
class SourceTool:
    """A tool, a prompt or a resource, as the source declares it."""

    name: str
    """For clients; any text that the author wrote."""
    cell: int
    """The cell's number among the notebook's code cells, from 1."""
    line: int
    """The line of the cell on which the function, or the declaration, begins; from 1."""
    function: Function | None
    """None if the cell names a function that the notebook does not define."""
    options: Mapping[str, Any]
    """Those of the magic's line or the decorator; `...` for values that are no literals."""
    declaration: "Declaration"
    is_method: bool = False
    """Whether the function's first parameter is the object."""
    kind: messages.Kind = "tool"


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The line that makes functions tools, where options are added."""

    cell: int
    line: int
    """The last line of the declaration, from 1."""
    form: str
    """"cell" for ``%%mcp_tool``, "line" for ``%mcp_tool``, "decorator" for a bare ``@mcp_tool``,
    "call" for ``@mcp_tool(...)`` and ``Tool(...)``."""


@dataclass(frozen=True, kw_only=True)
class FunctionSource:
    """A function of the notebook."""

    node: Function
    cell: int


@dataclass(kw_only=True)
class NotebookSource:
    """A notebook's source, parsed."""

    cells: Mapping[int, str]
    """The text of the code cells, by their numbers."""
    declared: list[SourceTool] = field(default_factory=list)
    """Tools, prompts and resources."""
    functions: dict[str, FunctionSource] = field(default_factory=dict)
    """By name; the last definition counts."""
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    """The dotted names that imported names stand for: ``pd`` is ``pandas``."""
    values: dict[str, ast.expr] = field(default_factory=dict)
    """The expressions that the notebook's variables were assigned last, by name."""

    @property
    def tools(self) -> list[SourceTool]:
        """The tools."""
        return [each for each in self.declared if each.kind == "tool"]

    def find_name(self, node: ast.expr) -> str | None:
        """Return the dotted name of a function or class of a library; None for anything else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.modules:
            return None
        return ".".join((self.modules[node.id], *parts))


def read_source(cells: Sequence[CodeCell]) -> NotebookSource:
    """Parse the code cells of a notebook."""
    source = NotebookSource(cells={cell.number: cell.source for cell in cells})
    named: list[tuple[int, int, Line]] = []
    for number, text in source.cells.items():
        magic = _MAGIC.match(text.partition("\n")[0])
        if magic is not None:
            _read_declaring_cell(source, number, text, cast("messages.Kind", magic[1]), magic[2])
            continue
        module = parse_cell(text)
        _note_module(source, module, number)
        source.declared += _find_decorated(source, module, number)
        named += [
            (number, text.count("\n", 0, line.start()) + 1, parsed)
            for line in _LINE.finditer(text)
            if (parsed := _parse_line(line[2], None, cast("messages.Kind", line[1]))) is not None
        ]
    for number, row, parsed in named:
        source.declared += _find_named(source, number, row, parsed)
    # The last one of a name counts, as in the notebook.
    source.declared = list({(each.kind, each.name): each for each in source.declared}.values())
    return source


def parse_cell(text: str, offset: int = 0) -> ast.Module:
    """Parse the Python of a cell, with IPython's syntax; empty if it is something else.

    Args:
        text: The cell, or its rest below a magic's line.
        offset: The number of lines above the text in its cell.
    """
    magic = _CELL_MAGIC.match(text)
    if magic is not None:
        if magic[1] not in _PYTHON_MAGICS:
            return ast.Module([], [])
        offset += magic[0].count("\n")
        text = text[magic.end() :]
    module = _parse(text) or _parse(_transform(text)) or ast.Module([], [])
    ast.increment_lineno(module, offset)
    return module


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _transform(text: str) -> str:
    """Translate IPython's syntax to Python, line for line."""
    from IPython.core.inputtransformer2 import TransformerManager  # noqa: PLC0415 - slow to import

    try:
        return "".join(TransformerManager().do_token_transforms(text.splitlines(keepends=True)))
    except Exception:  # noqa: BLE001 - the cell is no Python, and running it says so
        return text


def _note_module(source: NotebookSource, module: ast.Module, cell: int) -> None:
    """Remember the functions, classes, imports and values of a cell."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            source.functions[node.name] = FunctionSource(node=node, cell=cell)
        elif isinstance(node, ast.ClassDef):
            source.classes[node.name] = node
    for child in ast.walk(module):
        source.modules.update(list_imports(child))
        if isinstance(child, ast.Assign):
            names = [target.id for target in child.targets if isinstance(target, ast.Name)]
            source.values.update(dict.fromkeys(names, child.value))


def list_imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that a statement imports, each with its dotted name."""
    if isinstance(node, ast.Import):
        for each in node.names:
            root = each.name.partition(".")[0]
            yield (each.asname, each.name) if each.asname else (root, root)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for each in node.names:
            yield each.asname or each.name, f"{node.module}.{each.name}"


@dataclass(frozen=True)
class Assignment:
    """A name that gets a value."""

    name: str
    value: ast.expr
    is_item: bool = False
    """Whether the name gets the items of the value, one after the other."""


def list_assignments(function: Function) -> Iterator[Assignment]:
    """Yield the assignments within a function, those of loops and of `with` included."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pair(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign):
            if node.value is not None:
                yield from _pair(node.target, node.value)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            yield from _pair(node.target, node.iter, is_item=True)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield from _pair(node.optional_vars, node.context_expr)


def _pair(target: ast.expr, value: ast.expr, *, is_item: bool = False) -> Iterator[Assignment]:
    if isinstance(target, ast.Name):
        yield Assignment(target.id, value, is_item)
    elif isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) and not is_item else []
        for number, item in enumerate(target.elts):
            part = parts[number] if number < len(parts) else value
            yield from _pair(item, part, is_item=is_item)


# -- %%mcp_tool, %%mcp_prompt, %%mcp_resource ------------------------------------------------------


def _parse_line(line: str, body: str | None, kind: messages.Kind) -> Line | None:
    try:
        return read_line(build_parser(kind), line, body, lambda text: text, kind)
    except (DefinitionError, UsageError):
        return None  # declaring it says what is wrong


def _list_options(line: Line) -> dict[str, Any]:
    try:
        options = build_options(line.options, line.kind)
    except DefinitionError:
        return {}
    return {
        name: getattr(options, name, None)
        for name in ("name", "description", "read_only", "destructive", "run")
    }


def _read_declaring_cell(
    source: NotebookSource, number: int, text: str, kind: messages.Kind, line: str | None
) -> None:
    _, _, body = text.partition("\n")
    if kind == "resource":
        _read_resource_cell(source, number, body, line or "")
        return
    parsed = _parse_line(line or "", body, kind)
    if parsed is None or (kind == "prompt" and parsed.signature is not None):  # Markdown
        return
    offset = parsed.head.count("\n") + 1
    options = _list_options(parsed)
    declaration = Declaration(cell=number, line=offset, form="cell")
    if parsed.signature is not None:
        function = _make_function(parsed, offset)
        _note_module(source, ast.Module(function.body, []), number)
        functions = [function]
    else:
        module = parse_cell(parsed.body, offset)
        _note_module(source, module, number)
        functions = [
            node
            for node in module.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and not node.name.startswith("_")
        ]
    for each in functions:
        source.functions[each.name] = FunctionSource(node=each, cell=number)
        source.declared.append(
            SourceTool(
                name=options.get("name") or each.name,
                cell=number,
                line=each.lineno,
                function=each,
                options=options,
                declaration=declaration,
                kind=kind,
            )
        )


def _read_resource_cell(source: NotebookSource, number: int, body: str, line: str) -> None:
    try:
        uri, parsed = read_resource_line(build_parser("resource"), line, body, lambda text: text)
        variables = read_variables(uri)
    except (DefinitionError, UsageError):
        return
    options = _list_options(parsed)
    module = parse_cell(body, 1)
    _note_module(source, module, number)
    last = module.body[-1] if module.body else None
    function: Function
    if isinstance(last, Function):
        function, name = last, last.name
    else:  # the cell is the body of a function of the URI's variables
        rest = ", ".join(f"{name}: str" for name in variables)
        whole = Line(
            kind="resource",
            options=parsed.options,
            names=(),
            signature=Signature(name="resource", rest=f"({rest})", column=0),
            head=line,
            body=body,
        )
        function, name = _make_function(whole, 1), make_resource_name(uri)
    source.declared.append(
        SourceTool(
            name=options.get("name") or name,
            cell=number,
            line=function.lineno,
            function=function,
            options=options,
            declaration=Declaration(cell=number, line=1, form="cell"),
            kind="resource",
        )
    )


def _make_function(line: Line, offset: int) -> Function:
    """Return the function that a cell below a signature becomes."""
    assert line.signature is not None
    shape = _parse(f"def function{line.signature.rest}: pass")
    body = parse_cell(textwrap.dedent(line.body), offset).body
    arguments = shape.body[0].args if shape and isinstance(shape.body[0], Function) else None
    function: Function = ast.FunctionDef(
        name=line.signature.name,
        args=arguments or ast.arguments([], [], None, [], [], None, []),
        body=body or [ast.Pass(lineno=offset, col_offset=0)],
        decorator_list=[],
        returns=None,
        lineno=1,
        col_offset=0,
    )
    for argument in ast.walk(function.args):
        if isinstance(argument, ast.arg):
            argument.lineno = 1
    return function


# -- %mcp_tool f g, %mcp_prompt f g ----------------------------------------------------------------


def _find_named(source: NotebookSource, number: int, row: int, line: Line) -> Iterator[SourceTool]:
    options = _list_options(line)
    for word in " ".join(line.names).replace(",", " ").split():
        known = source.functions.get(word)
        yield SourceTool(
            name=options.get("name") or word.rpartition(".")[2],
            cell=number if known is None else known.cell,
            line=row if known is None else known.node.lineno,
            function=None if known is None else known.node,
            options=options,
            declaration=Declaration(cell=number, line=row, form="line"),
            kind=line.kind,
        )


# -- @mcp_tool, Tool(...) --------------------------------------------------------------------------


def _find_decorated(
    source: NotebookSource, module: ast.Module, number: int
) -> Iterator[SourceTool]:
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield from _read_decorators(source, item, number, _find_prefix(source, node))
        elif isinstance(node, ast.Call) and source.find_name(node.func) == "mcp_notebook.Tool":
            options = _read_keywords(node)
            if isinstance(options.get("name"), str):
                yield SourceTool(
                    name=options["name"],
                    cell=number,
                    line=node.lineno,
                    function=None,
                    options=options,
                    declaration=Declaration(cell=number, line=node.lineno, form="call"),
                )
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _read_decorators(source, statement, number, None)


def _read_decorators(
    source: NotebookSource, function: Function, number: int, prefix: str | None
) -> Iterator[SourceTool]:
    for decorator in function.decorator_list:
        is_call = isinstance(decorator, ast.Call)
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        kind = _DECORATORS.get(source.find_name(called) or "")
        if kind is None:
            continue
        options = _read_keywords(decorator) if isinstance(decorator, ast.Call) else {}
        name = options.get("name") if isinstance(options.get("name"), str) else function.name
        yield SourceTool(
            name=f"{prefix or ''}{name}",
            cell=number,
            line=function.lineno,
            function=function,
            options=options,
            declaration=Declaration(
                cell=number,
                line=decorator.end_lineno or decorator.lineno,
                form="call" if is_call else "decorator",
            ),
            is_method=prefix is not None,
            kind=kind,
        )


def _find_prefix(source: NotebookSource, node: ast.ClassDef) -> str:
    for decorator in node.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        if source.find_name(decorator.func) == "mcp_notebook.mcp_tools":
            return str(_read_keywords(decorator).get("prefix") or "")
    return ""


def _read_keywords(call: ast.Call) -> dict[str, Any]:
    """Return the keyword arguments; those that are no literals are `...`."""
    values = {}
    for keyword in call.keywords:
        if keyword.arg is not None:
            try:
                values[keyword.arg] = ast.literal_eval(keyword.value)
            except (ValueError, TypeError, RecursionError):
                values[keyword.arg] = ...
    return values


# -- findings --------------------------------------------------------------------------------------


class Places:
    """Where tools are declared, for findings about them."""

    def __init__(self, source: NotebookSource) -> None:
        self._tools = {tool.name: tool for tool in source.tools}

    def find_tool(self, name: str) -> SourceTool | None:
        """Return a tool of the source."""
        return self._tools.get(name)

    def make_finding(  # noqa: PLR0913 - those of a finding
        self,
        tool: str,
        *,
        rule: str,
        severity: Severity,
        reason: str,
        advice: str,
        parameter: str | None = None,
    ) -> Finding:
        """Return a finding about a tool, at its function or at one of its parameters."""
        source = self._tools.get(tool)
        line = None if source is None else source.line
        if source is not None and source.function is not None and parameter is not None:
            named = (
                node.lineno
                for node in ast.walk(source.function.args)
                if isinstance(node, ast.arg) and node.arg == parameter
            )
            line = next(named, line)
        return Finding(
            tool=tool,
            rule=rule,
            severity=severity,
            reason=reason,
            advice=advice,
            cell=None if source is None else source.cell,
            line=line,
        )
