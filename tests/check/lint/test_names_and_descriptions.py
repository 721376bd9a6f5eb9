"""Words that say too little, or that clients do not take."""

import pytest
from linted import lint, list_rules, make_subject

from mcp_notebook.check.lint.rules import lint_tools
from mcp_notebook.text.missing_tools import RESERVED_NAMES

GOOD = '''%%mcp_tool --read-only
def count_orders(region: str) -> int:
    """Number of orders that were shipped this year.

    Args:
        region: EU or US.
    """
    return 3
'''


def describe_tool(name, description, parameters=""):
    return f'%%mcp_tool --read-only\ndef {name}({parameters}):\n    """{description}"""\n'


def find_refused_name(cell):
    findings = lint_tools(make_subject([cell], []))
    return next(finding for finding in findings if finding.rule == "refused-name")


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("%%mcp_tool --name sales.total\ndef total(): ...", 2),
        ("%%mcp_tool sales.total(year: int)\nyear", 1),
        ("def f(): ...\n%mcp_tool f --name 'two words'", 1),
        ("from mcp_notebook import mcp_tool\n@mcp_tool(name='a.b')\ndef f(): ...", 3),
        ("from mcp_notebook import Tool\nTool(name='a.b', handler=print)", 2),
        ("%%mcp_tool\n# first\ndef " + "x" * 65 + "(): ...", 3),
    ],
)
def test_a_name_that_apis_refuse_is_found_in_the_source(cell, line):
    finding = find_refused_name(cell)
    assert (finding.cell, finding.line) == (1, line)
    assert finding.severity == "error"


def test_a_refused_name_comes_with_one_that_is_taken():
    finding = find_refused_name("%%mcp_tool --name sales.total\ndef f(): ...")
    assert "`sales_total`" in finding.advice
    assert "'.'" in finding.reason


def test_a_name_that_is_too_long_with_a_clients_prefix_is_a_warning(shell):
    assert list_rules(shell, GOOD.replace("count_orders", "count_" + "x" * 44)) == ["long-name"]


@pytest.mark.parametrize("name", RESERVED_NAMES)
def test_the_name_of_a_fixed_tool_is_taken(name):
    assert find_refused_name(f"%%mcp_tool\ndef {name}(): ...")


def test_a_tool_that_says_what_it_does_has_no_findings(shell):
    assert lint(shell, GOOD) == []


@pytest.mark.parametrize("name", ["run", "f", "my_tool", "process_data", "test1"])
def test_a_name_that_could_stand_for_anything_is_found(shell, name):
    cell = describe_tool(name, "Number of orders that were shipped this year.")
    assert list_rules(shell, cell) == ["vague-name"]


def test_a_tool_without_a_description_is_an_error(shell):
    [finding] = lint(shell, "%%mcp_tool --read-only\ndef count_orders(): ...")
    assert (finding.rule, finding.severity) == ("no-description", "error")


@pytest.mark.parametrize(
    "text", ["Count orders.", "Counts the orders.", "The order count.", "TODO"]
)
def test_a_description_that_repeats_the_name_is_found(shell, text):
    assert list_rules(shell, describe_tool("count_orders", text)) == ["short-description"]


def test_parameters_without_a_description_are_named_where_they_are(shell):
    cell = '''%%mcp_tool --read-only
def count_orders(
    region: Annotated[str, "EU or US."],
    since: int,
    year: int,
    kind: Literal["open", "paid"],
    limit: int = 3,
):
    """Number of orders that were shipped in a year."""
'''
    [finding] = lint(shell, "from typing import Annotated, Literal", cell)
    assert finding.rule == "undescribed-parameter"
    assert "2 parameters have no description: `since`, `limit`" in finding.reason
    assert (finding.cell, finding.line) == (2, 4)


# -- two tools -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("get_customer", "Customer by number."), ("fetch_customers", "The customer of a number.")),
        (
            ("total_sales", "Sum of the sales of a region."),
            ("sales_sum", "Sum of sales, of a region."),
        ),
        (("plot_rain", "Draw the measured values."), ("plot_snow", "Draw the measured values.")),
        (
            ("revenue", "Monthly revenue of a region and year in euros."),
            ("turnover", "Monthly revenue of a region in euros, a year."),
        ),
    ],
)
def test_tools_that_a_model_will_confuse_are_found(shell, first, second):
    cells = [describe_tool(*first), describe_tool(*second)]
    findings = [each for each in lint(shell, *cells) if each.rule == "confusable"]
    assert [each.tool for each in findings] == [second[0]]
    assert f"`{first[0]}`" in findings[0].reason


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("plot_rain", "Plot the rain, by month."), ("plot_snow", "Plot the snow, by month.")),
        (
            ("mean_error", "Mean error of a fit."),
            ("mean_log_error", "Mean logarithmic error of a fit."),
        ),
        (("get_customer", "Customer by number."), ("get_customers", "All that bought in a year.")),
        (
            ("add_order", "Add an order of a customer."),
            ("delete_order", "Delete an order for good."),
        ),
    ],
)
def test_tools_that_differ_in_what_matters_are_not(shell, first, second):
    assert "confusable" not in list_rules(shell, describe_tool(*first), describe_tool(*second))
