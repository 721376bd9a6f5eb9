"""Notebooks of a few cells, linted without a kernel."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from mcp_notebook.bridge.server.forms.tool_form import VERSIONS, make_tool_form
from mcp_notebook.check.descriptions import judge_words
from mcp_notebook.check.direct_uses import find_direct_uses
from mcp_notebook.check.findings import Finding
from mcp_notebook.check.objects import judge_changes, judge_objects
from mcp_notebook.check.schemas import judge_schemas
from mcp_notebook.check.subject import CheckedTool, CodeCell, Subject, find_definition
from mcp_notebook.kernel.notebook.declarations import declare_cell, declare_names
from mcp_notebook.kernel.notebook.magic_line import build_parser, read_line
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool, make_tool, read_mark


def lint(shell: InteractiveShell, *cells: str) -> list[Finding]:
    """Return the findings on a notebook of these cells."""
    subject = make_subject(cells, declare(shell, cells))
    checks = (find_direct_uses, judge_words, judge_schemas, judge_objects)
    changes = [finding for tool in subject.tools for finding in judge_changes(tool, ())]
    return [*(finding for check in checks for finding in check(subject)), *changes]


def list_rules(shell: InteractiveShell, *cells: str) -> list[str]:
    """Return the rules of the findings on a notebook of these cells."""
    return [finding.rule for finding in lint(shell, *cells)]


def make_subject(cells: Sequence[str], tools: Iterable[DeclaredTool]) -> Subject:
    """Return what is linted."""
    numbered = [CodeCell(number=number, source=cell) for number, cell in enumerate(cells, start=1)]
    checked = []
    for tool in tools:
        entry = make_tool_form(tool.name, tool.info, VERSIONS[-1])
        cell, function = find_definition(numbered, tool.name)
        checked.append(CheckedTool(info=tool.info, entry=entry, cell=cell, function=function))
    return Subject(notebook=Path("test.ipynb"), cells=numbered, tools=checked)


def declare(shell: InteractiveShell, cells: Iterable[str]) -> list[DeclaredTool]:
    """Run cells as a notebook with the extension would; return the tools that they declare."""
    tools = {}
    for cell in cells:
        head, _, body = cell.partition("\n")
        if head.startswith("%%mcp_tool"):
            line = read_line(build_parser(), head[10:], body, str)
            found = list(declare_cell(shell, line, None).tools)
        else:
            rest = re.sub(r"(?m)^%(?:load_ext|mcp).*$", "", cell)
            shell.run_cell(rest).raise_error()
            found = [
                tool
                for words in re.findall(r"(?m)^%mcp_tool (.*)$", cell)
                for tool in declare_names(
                    shell, read_line(build_parser(), words, None, str), None
                ).tools
            ]
            marked = [value for value in shell.user_ns.values() if read_mark(value)]
            found += [make_tool(value) for value in marked if f"def {value.__name__}(" in cell]
        tools.update({tool.name: tool for tool in found})
    return list(tools.values())
