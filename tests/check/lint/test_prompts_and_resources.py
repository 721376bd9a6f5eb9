"""Prompts and resources are read as tools are: what they change, and where clients' text goes."""

import pytest
from linted import make_subject

from mcp_notebook.check.lint.rules import lint_tools

SETUP = """
import subprocess
import pandas as pd
from mcp_notebook import mcp_prompt, mcp_resource
orders = pd.DataFrame({"region": ["EU"]})
"""


def find(cell):
    """Return name, rule, cell and line of each finding."""
    findings = lint_tools(make_subject([SETUP, cell], []))
    return [(each.tool, each.rule, each.cell, each.line) for each in findings]


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        (
            "%%mcp_prompt\ndef report(year: str):\n    orders['year'] = year\n    return 'Look.'",
            [("report", "writes", 2, 3)],
        ),
        (
            "%%mcp_prompt\ndef report(name: str):\n    return eval(name)",
            [("report", "client-code", 2, 3)],
        ),
        (
            "@mcp_prompt\ndef report(name: str):\n    return open(name).read()",
            [("report", "client-path", 2, 3)],
        ),
        (
            "def report(name: str):\n    return eval(name)\n\n%mcp_prompt report",
            [("report", "client-code", 2, 2)],
        ),
        (
            "%%mcp_resource file://{name}\nopen(name).read()",
            [("file_name", "client-path", 2, 2)],
        ),
        (
            "%%mcp_resource logs://{name} --name logs\n# One\nsubprocess.run(name, shell=True)",
            [("logs", "client-shell", 2, 3)],
        ),
        (
            "%%mcp_resource rows://{where}\ndef rows(where: str):\n    return orders.query(where)",
            [("rows", "client-query", 2, 3)],
        ),
        (
            '@mcp_resource("rows://{q}")\ndef rows(q: str):\n    return orders.query(q)',
            [("rows", "client-query", 2, 3)],
        ),
        (
            "%%mcp_resource data://orders\norders.sort_values('region', inplace=True)\norders",
            [("data_orders", "writes", 2, 2)],
        ),
    ],
)
def test_what_a_prompt_or_a_resource_changes_or_runs_is_found(cell, found):
    assert find(cell) == found


@pytest.mark.parametrize(
    "cell",
    [
        "%%mcp_prompt report(year: int)\n# A report on {year}\n\norders['x'] = eval(year)",
        "%%mcp_prompt\ndef report(year: int):\n    return f'Look at {year}.'",
        "%%mcp_resource data://orders\norders.groupby('region').size()",
        "%%mcp_resource data://{region}\norders[orders.region == region]",
        "%%mcp_resource\norders['x'] = 1",
        "%%mcp_resource data://orders --no-such-option\norders['x'] = 1",
        '@mcp_resource("data://orders")\ndef rows():\n    return orders.head()',
    ],
)
def test_prompts_and_resources_that_only_read_are_silent(cell):
    assert find(cell) == []


def test_the_finding_says_what_clients_do():
    cell = "%%mcp_resource data://orders\norders['x'] = 1"
    [finding] = lint_tools(make_subject([SETUP, cell], []))
    assert "It is a resource, but it changes `orders`. Clients read it as often" in finding.reason
    assert "or make it a tool" in finding.advice
