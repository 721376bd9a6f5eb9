"""Counts the tokens of tools' entries and answers.

Runs in the process of the command.
"""

from collections.abc import Iterator

from mcp_notebook.check.findings import Finding
from mcp_notebook.check.subject import Subject

_CHARACTERS = 4
"""Characters of a token on average, in English text and JSON."""


def count_tokens(text: str) -> int:
    """Return the number of tokens of a text, estimated from its length."""
    return -(-len(text) // _CHARACTERS)


def find_savings(subject: Subject) -> Iterator[Finding]:
    """Yield what would save most tokens, as notes."""
    for _tool in subject.list_tools():
        yield from ()
