"""Reads the code of tools, and what clients see of them, for what a model will misunderstand.

Runs in the process of the command; calls nothing.
"""

from collections.abc import Iterator

from mcp_notebook.check.findings import Finding
from mcp_notebook.check.subject import Subject


def lint_tools(subject: Subject) -> Iterator[Finding]:
    """Yield what is wrong with the code or the descriptions of tools."""
    for _tool in subject.list_tools():
        yield from ()
