"""What is checked: the tools of a notebook, the source of its cells, and answers to examples.

Pure data, apart from parsing the cells.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from mcp_notebook.bridge.headless.cell_progress import CellProgress
from mcp_notebook.check.findings import Finding, Severity
from mcp_notebook.kernel.notebook.reassigned_names import parse_cell
from mcp_notebook.wire import messages

Era: TypeAlias = Literal["modern", "legacy"]
"""A client that discovers the server (MCP 2026-07-28), or one that begins with a handshake."""


_BODY_CELL = re.compile(r"%%mcp_tool\b[^\n(]*?(\w+)[ \t]*\(")
"""The line above a cell that is the body of a tool's function."""
_IGNORE = re.compile(r"#\s*mcp-check:\s*ignore\s+([\w, \t-]+)")


@dataclass(frozen=True, kw_only=True)
class CodeCell:
    """A code cell of the notebook."""

    number: int
    """Its number among the notebook's code cells, from 1."""
    source: str

    @property
    def ignored_rules(self) -> frozenset[str]:
        """The rules that its author switches off for it: ``# mcp-check: ignore rule, rule``."""
        words = _IGNORE.findall(self.source)
        return frozenset(word for line in words for word in re.split(r"[,\s]+", line) if word)

    @cached_property
    def tree(self) -> ast.Module | None:
        """Its code; see `parse_cell`."""
        return parse_cell(self.source)


@dataclass(frozen=True, kw_only=True)
class CheckedTool:
    """A tool, a prompt or a resource, as the kernel describes it and as clients see it."""

    info: messages.ToolInfo
    entry: Mapping[str, Any]
    """Its JSON object in the answer to ``tools/list`` of the newest version of MCP; for a prompt or
    a resource, empty."""
    cell: CodeCell | None = None
    """The cell that defines its function; None if it was not found."""
    function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    """The definition of its function in `cell`, whose lines are those of the cell."""

    @property
    def name(self) -> str:
        """The name that clients use."""
        return str(self.entry.get("name", self.info.name))

    @property
    def properties(self) -> Mapping[str, Any]:
        """The schemas of the parameters that clients see."""
        properties: Mapping[str, Any] = self.info.input_schema.get("properties", {})
        return properties

    def make_finding(
        self,
        rule: str,
        severity: Severity,
        *,
        reason: str,
        advice: str,
        parameter: str | None = None,
    ) -> Finding:
        """Return a finding at the tool's function, or at one of its parameters."""
        line = None if self.function is None else self.function.lineno
        if self.function is not None and parameter is not None:
            named = (
                node.lineno
                for node in ast.walk(self.function.args)
                if isinstance(node, ast.arg) and node.arg == parameter
            )
            line = next(named, line)
        return Finding(
            tool=self.name,
            rule=rule,
            severity=severity,
            reason=reason,
            advice=advice,
            cell=None if self.cell is None else self.cell.number,
            line=line,
        )


def is_read_only(tool: CheckedTool) -> bool:
    """Return whether its author says that a tool changes nothing."""
    return bool((tool.info.annotations or {}).get("readOnlyHint"))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of a tool to one of its examples."""

    tool: str
    arguments: Mapping[str, Any]
    era: Era
    result: Mapping[str, Any]
    """The ``CallToolResult`` as JSON, as the client got it."""
    seconds: float
    failure: str | None = None
    """Why the client did not take the answer, or got none; None if it took one."""
    is_late: bool = False
    """Whether the time limit ended the call."""
    ended_process: bool = False
    """Whether the kernel, or its copy, ended during the call."""

    @property
    def is_error(self) -> bool:
        """Whether the tool answered with an error."""
        return bool(self.result.get("isError"))

    @property
    def example(self) -> str:
        """The arguments as JSON."""
        return json.dumps(dict(self.arguments), ensure_ascii=False)

    @property
    def text(self) -> str:
        """The text that a model reads."""
        blocks = self.result.get("content", ())
        return "\n".join(block["text"] for block in blocks if block.get("type") == "text")


@dataclass(frozen=True, kw_only=True)
class Trial(Answer):
    """The answer of a tool that was called in a copy of the kernel."""

    era: Era = "modern"
    changes: Sequence[tuple[str, str]] | None = None
    """What the call changed there, as pairs of kind and name (`kernel.fork.changes`); None if that
    is not known."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A notebook that has run, with everything that the checks look at."""

    notebook: Path
    cells: Sequence[CodeCell]
    tools: Sequence[CheckedTool]
    """Its tools, prompts and resources, in the order of the list (`CheckedTool.info.kind`)."""
    answers: list[Answer] = field(default_factory=list)
    """The answers to the tools' examples, in the order of the calls."""
    trials: list[Trial] = field(default_factory=list)
    """The answers to the examples of read-only tools in copies of the kernel."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Why no example of a tool was called, by the tool's name: the end of "not called: ..."."""
    failures: Sequence[CellProgress] = ()
    """The cells that failed, by their numbers, with what happened."""

    def list_tools(self) -> Iterator[CheckedTool]:
        """Yield the tools, without prompts and resources."""
        return (tool for tool in self.tools if tool.info.kind == "tool")


Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def find_definition(
    cells: Sequence[CodeCell], name: str
) -> tuple[CodeCell | None, Function | None]:
    """Return the last cell that defines a tool's function, and the definition.

    Args:
        cells: The code cells, in the order in which they run.
        name: The tool's name: that of the function, or one that an option gives it.
    """
    for cell in reversed(cells):
        body = _BODY_CELL.match(cell.source)
        if body and body[1] == name and cell.tree is not None:
            return cell, _wrap_body(name, cell.tree)
        functions = [node for node in _list_functions(cell) if _has_name(node, name)]
        if functions:
            return cell, functions[-1]
        named = re.search(rf"--name[ =][\"']?{re.escape(name)}\b", cell.source.partition("\n")[0])
        if named and (functions := _list_functions(cell)):
            return cell, functions[-1]
    return None, None


def _wrap_body(name: str, tree: ast.Module) -> ast.FunctionDef:
    """Return the function of a cell below a signature; its parameters are left out."""
    nothing = ast.arguments([], [], None, [], [], None, [])
    return ast.FunctionDef(name, nothing, tree.body, [], lineno=1, col_offset=0)


def _list_functions(cell: CodeCell) -> list[Function]:
    body = [] if cell.tree is None else cell.tree.body
    return [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _has_name(function: Function, name: str) -> bool:
    """Return whether this is the function's name, or a decorator's ``name=``."""
    keywords = [
        keyword.value.value
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant)
    ]
    return name in (keywords or [function.name])
