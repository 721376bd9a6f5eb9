"""Text from a client that would run, or name a file."""

import pytest
from linted import make_subject

from mcp_notebook.check.lint.rules import lint_tools

SETUP = """
import asyncio, json, os, re, shlex, sqlite3, subprocess
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal
import pandas as pd
from pydantic import BaseModel, Field
import sqlalchemy as sa
orders = pd.read_csv("orders.csv")
connection = sqlite3.connect("orders.db")
TABLES = {"orders": orders}
FOLDER = Path("data")
class Color(Enum):
    RED = "red"
class Query(BaseModel):
    text: str
Region = Literal["EU", "US"]

def build(table):
    return f"SELECT * FROM {table}"

def run(statement):
    return connection.execute(statement)
"""


def list_reaches(body, annotation="str"):
    """Return the rules on text from clients for a tool with this body."""
    lines = "\n".join(f"    {line}" for line in body.strip().split("\n"))
    cell = f"%%mcp_tool --read-only\ndef look(name: {annotation}):\n{lines}"
    findings = lint_tools(make_subject([SETUP, cell], []))
    return [each.rule for each in findings if each.rule.startswith("client-")]


FAULTS = [
    ("client-shell", "subprocess.run(name, shell=True)"),
    ("client-shell", "subprocess.run(f'ls {name}', shell=True)"),
    ("client-shell", "subprocess.check_output('ls ' + name.strip(), shell=True)"),
    ("client-shell", "os.system('ls %s' % name)"),
    ("client-shell", "os.popen('ls {}'.format(name))"),
    ("client-shell", "subprocess.run([name, '-l'])"),
    ("client-shell", "subprocess.run(['git', 'log', name])"),
    ("client-shell", "command = ['git', 'log']\ncommand.append(name)\nsubprocess.run(command[2])"),
    ("client-shell", "!ls {name}"),
    ("client-shell", "files = !ls $name\nreturn files"),
    ("client-code", "return eval(name)"),
    ("client-code", "exec(f'x = {name}')"),
    ("client-sql", "connection.execute(f'SELECT * FROM t WHERE x = {name!r}')"),
    ("client-sql", "sql = 'SELECT * FROM t WHERE x = ' + name\nconnection.execute(sql)"),
    ("client-sql", "pd.read_sql(f'SELECT * FROM {name}', connection)"),
    ("client-sql", "cursor = connection.cursor()\ncursor.execute(name)"),
    ("client-sql", "connection.execute(build(name))"),
    ("client-sql", "return run(f'SELECT * FROM t ORDER BY {name}')"),
    ("client-sql", "connection.execute(sa.text(f'SELECT * FROM {name}'))"),
    ("client-query", "return orders.query(f'region == \"{name}\"')"),
    ("client-query", "return orders.query(name)"),
    ("client-query", "return orders.eval(name)"),
    ("client-query", "frame = orders.copy()\nreturn frame[frame.x > 1].query(name)"),
    ("client-path", "return open(name).read()"),
    ("client-path", "return (FOLDER / name).read_text()"),
    ("client-path", "path = Path(name).expanduser()\nreturn path.read_text()"),
    ("client-path", "return pd.read_csv(f'data/{name}.csv')"),
    ("client-path", "orders.to_csv(name)"),
    ("client-path", "with open(os.path.join('data', name)) as file:\n    return file.read()"),
]


@pytest.mark.parametrize(("rule", "body"), FAULTS)
def test_text_from_a_client_that_reaches_such_code_is_found(rule, body):
    assert list_reaches(body) == [rule]


SAFE = [
    "return orders[orders.region == name]",
    "return TABLES[name].head()",
    "return pd.read_csv(FILES[name])",
    "connection.execute('SELECT * FROM t WHERE x = ?', [name])",
    "connection.execute('SELECT * FROM t WHERE x = ?', (f'%{name}%',))",
    "return orders.query('region == @name')",
    "subprocess.run(['git', 'log', '--', name])",
    "subprocess.run(['git', 'log', f'--author={name}'])",
    "os.system('ls ' + shlex.quote(name))",
    "if name not in TABLES:\n    raise ValueError\nreturn run(f'SELECT * FROM {name}')",
    "if not re.fullmatch('[a-z]+', name):\n    raise ValueError\nreturn open(name).read()",
    "path = FOLDER / name\nassert path.is_relative_to(FOLDER)\nreturn path.read_text()",
    "assert name in TABLES\nreturn pd.read_csv(f'{name}.csv')",
    "if not name.isalnum():\n    return None\nreturn open(f'data/{name}.txt').read()",
    "return open(FOLDER / Path(name).name).read()",
    "return json.loads(name)",
    "return model.query(name)",
    "agent.execute(name)",
    "return connection.execute(f'SELECT * FROM t LIMIT {int(name)}')",
    "return name.open",
    "print(f'SELECT * FROM {name}')",
]


@pytest.mark.parametrize("body", SAFE)
def test_text_that_is_checked_or_passed_as_a_value_is_not(body):
    assert list_reaches(body) == []


@pytest.mark.parametrize(
    "annotation",
    [
        "int",
        "float | None",
        "Literal['a', 'b']",
        "list[Literal['a']]",
        "Color",
        "Region",
        "Annotated[int, Field(ge=1)]",
        "Annotated[str, Field(pattern='^[a-z]+$')]",
        "'int'",
    ],
)
def test_values_that_are_checked_before_the_call_are_safe(annotation):
    assert list_reaches("return eval(name)", annotation) == []


@pytest.mark.parametrize(
    "annotation",
    ["str", "list[str]", "str | None", "dict", "Query", "Annotated[str, 'Any.']", "Path"],
)
def test_values_with_text_are_followed(annotation):
    body = "return connection.execute(f'SELECT {name} FROM t')"
    assert list_reaches(body, annotation) == ["client-sql"]


def test_a_field_of_a_model_is_followed():
    assert list_reaches("return eval(query.text)".replace("query", "name"), "Query") == [
        "client-code"
    ]


def test_a_path_parameter_that_is_read_is_found():
    assert list_reaches("return name.read_text()", "Path") == ["client-path"]


def test_a_finding_says_where_what_and_how_else():
    cell = "%%mcp_tool --read-only\ndef look(name: str):\n    return run(f'SELECT * FROM {name}')"
    [finding] = lint_tools(make_subject([SETUP, cell], []))
    assert (finding.cell, finding.line) == (1, SETUP.rstrip().count("\n") + 1)  # in `run`
    assert finding.severity == "error"
    assert "`name` is a SQL statement" in finding.reason or "`name` becomes part" in finding.reason
    assert "`Literal`" in finding.advice or "tools with parameters" in finding.advice


def test_a_cell_with_a_signature_is_followed():
    cell = "%%mcp_tool look(name: str) --read-only\nconnection.execute(f'SELECT * FROM {name}')"
    [finding] = lint_tools(make_subject([SETUP, cell], []))
    assert (finding.rule, finding.cell, finding.line) == ("client-sql", 2, 2)
