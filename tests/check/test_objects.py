"""The notebook's objects: what clients cannot send, what calls change, what is replaced."""

import pytest
from linted import declare, lint, make_subject

from mcp_notebook.check.objects import judge_objects

SETUP = """
import pandas as pd
df, limit, i = pd.DataFrame({"a": [1]}), 1, 0
"""


def find(shell, *cells):
    """Return rule, line and reason of the findings on objects."""
    rules = ("object-parameter", "changes-object", "reassigned-name")
    return [(each.rule, each.line, each) for each in lint(shell, *cells) if each.rule in rules]


def test_a_parameter_that_is_used_as_an_object_is_found_with_what_to_write(shell):
    cell = '%%mcp_tool\ndef grade(model, n):\n    """Grade."""\n    return model.predict(n)'
    ((rule, line, finding),) = find(shell, cell)
    assert (rule, line) == ("object-parameter", 2)
    assert "`model`, an object (`model.predict`)" in finding.reason
    assert "`%%mcp_tool my_grade(n)` with the line `grade(my_model, n)`" in finding.advice
    ((rule, _, _),) = find(shell, '%%mcp_tool grade(model)\n"Grade."\nmodel.predict(1)')
    assert rule == "object-parameter"
    assert find(shell, "model = object()", cell) == []  # it is bound


@pytest.mark.parametrize(
    ("head", "way"),
    [
        (
            "df, model, n=3, *rest, how",
            "my_grade(how, n=3)` with the line `grade(df, my_model, n",
        ),
        ("model, año, ano", "my_grade(año, ano)` with the line `grade(my_model, año, ano)`"),
        ("*, model, año, key=len", "my_grade(año)` with the line `grade(model=my_model, año"),
        ("n, ctx: Context, model", "my_grade(n, ctx: Context)` with the line `grade(n, ctx, my_mo"),
    ],
)
def test_what_to_write_has_the_functions_other_parameters(shell, head, way):
    setup = f"from mcp_notebook import Context\n{SETUP}"
    cell = f'%%mcp_tool\ndef grade({head}):\n    """Grade."""\n    return model.predict(1)'
    ((rule, _, finding),) = find(shell, setup, cell)
    assert rule == "object-parameter"
    assert way in finding.advice


def _change(shell, body):
    return find(shell, SETUP, f'%%mcp_tool\ndef look(df):\n    """Look."""\n    {body}')


@pytest.mark.parametrize(
    "body",
    [
        "df['b'] = 1",
        "df.loc[0, 'a'] = 2",
        "del df['a']",
        "df['a'] += 1",
        "df.columns = ['b']",
        "df.dropna(inplace=True)",
        "df['a'].fillna(0, inplace=True)",
        "return df.pop('a')",
    ],
)
def test_a_call_that_changes_a_bound_frame_in_place_is_found(shell, body):
    ((rule, _, finding),) = _change(shell, body)
    assert rule == "changes-object"
    assert "changes your `df` in place" in finding.reason


@pytest.mark.parametrize(
    "body",
    [
        "df = df.copy(); df['b'] = 1",
        "return df.assign(b=1)",
        "return df.dropna(inplace=False)",
        "other = {}; other['b'] = 1",
        "return df['a']",
    ],
)
def test_a_copy_that_is_changed_is_not(shell, body):
    assert _change(shell, body) == []


BODY = """%%mcp_tool above(n: int = 0)
"Above."
df = df[df.a > n]
for i in df.a: pass
len(df) + limit
"""


@pytest.mark.parametrize(
    ("later", "reasons"),
    [
        (
            ["df = df + 1", "x = 1", "for df in [df]: pass"],
            ["`df` is assigned again in cells 3 and"],
        ),
        ([f"deep = {'-' * 9_000}1", "df = 2"], ["`df` is assigned again in cell 4:"]),
        (["df, limit = df, 2"], ["`df` is assigned again in cell 3:", "`limit` is assigned again"]),
        (["if limit:\n    with open('x') as df: pass"], ["`df` is assigned again in cell 3:"]),
        (["i = n = 5"], []),  # the body's own, and its parameter
        (["def f():\n    df = 1", "[df for df in ()]", "import os as limit", "df['b'] = 1"], []),
        (['%%mcp_tool other()\n"Other."\nlimit = 3\nlimit'], []),  # in each call of its own
        (["%%bash\nlimit=3"], []),
        ([SETUP], []),  # the cell above, which has run again
    ],
)
def test_names_of_a_cell_that_is_a_body_and_that_later_cells_set_are_found(shell, later, reasons):
    shell.run_cell(SETUP).raise_error()
    subject = make_subject([SETUP, BODY, *later], declare(shell, [BODY]))
    found = [each.reason for each in judge_objects(subject) if each.rule == "reassigned-name"]
    assert len(found) == len(reasons)
    assert all(map(str.startswith, found, reasons))


def test_names_that_only_later_cells_set_and_those_of_functions_are_not(shell):
    cell = '%%mcp_tool\ndef look():\n    """Look."""\n    return limit'
    assert find(shell, SETUP, cell, "limit = 2") == []
    assert find(shell, '%%mcp_tool look()\n"Look."\nlater', "later = 2", "later = 3") == []


def test_what_clients_send_under_another_name_is_not_the_notebooks(shell):
    cell = '%%mcp_tool\ndef fill(λs: list[int], ctx: Context):\n    """Fill."""\n'
    cell += "    λs[0] = 5\n    ctx.seen = 1"
    assert find(shell, "from mcp_notebook import Context", cell) == []


def test_what_a_client_sends_as_fields_of_a_model_is_no_object_of_the_notebook(shell):
    setup = "from typing import TypedDict\nclass Row(TypedDict):\n    a: int"
    body = 'def look(row: Row):\n    """Look."""\n    row["b"] = 2'
    assert find(shell, setup, f"%%mcp_tool --flatten\n{body}") == []
