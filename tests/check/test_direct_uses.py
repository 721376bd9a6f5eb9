"""Parameters that go directly into code, a shell or the text of a SQL statement."""

import pytest
from linted import lint

SETUP = """
import os, sqlite3, subprocess
from typing import Literal, Optional
import pandas as pd
connection = sqlite3.connect(":memory:")
def text(statement): return statement
"""


def find(shell, body, annotation="str"):
    """Return rule and line of each finding in a tool with this body."""
    cell = f'%%mcp_tool --read-only\ndef look(name: {annotation}):\n    """Look."""\n    {body}'
    return [
        (each.rule, each.line)
        for each in lint(shell, SETUP, cell)
        if each.rule.startswith("client-")
    ]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("return eval(name)", "client-code"),
        ("exec(f'x = {name}')", "client-code"),
        ("os.system('ls ' + name)", "client-shell"),
        ("return subprocess.run(name, shell=True)", "client-shell"),
        ("return subprocess.run('ls %s' % name, shell=True)", "client-shell"),
        ("return connection.execute(f'select * from {name}')", "client-sql"),
        ("return connection.execute('select * from ' + name)", "client-sql"),
        ("return connection.execute('select * from {}'.format(name))", "client-sql"),
        ("return pd.read_sql('select * from %s' % (name,), connection)", "client-sql"),
        ("return connection.execute(text(f'select {name}'))", "client-sql"),
    ],
)
def test_text_from_a_client_that_goes_directly_into_code_is_found(shell, body, rule):
    assert find(shell, body) == [(rule, 4)]


@pytest.mark.parametrize(
    ("body", "annotation"),
    [
        ("return connection.execute('select * from t where n = ?', (name,))", "str"),
        ("return connection.execute(name)", "str"),  # a tool for statements
        ("return subprocess.run(['ls', name])", "str"),
        ("return eval('1 + 1')", "str"),
        ("return connection.execute(f'select {name}')", "int"),
        ("return connection.execute(f'select {name}')", "Literal['a', 'b']"),
        ("return name.format(1)", "str"),
    ],
)
def test_what_a_client_cannot_choose_freely_is_not(shell, body, annotation):
    assert find(shell, body, annotation) == []


def test_an_optional_text_is_a_text(shell):
    assert find(shell, "return eval(name)", "Optional[str]") == [("client-code", 4)]


def test_a_cell_that_is_a_body_is_read_too(shell):
    cell = "%%mcp_tool look(name: str)\neval(name)"
    [finding] = [each for each in lint(shell, SETUP, cell) if each.rule == "client-code"]
    assert (finding.cell, finding.line) == (2, 2)
    assert "`name`, which clients send, goes into `eval`" in finding.reason
