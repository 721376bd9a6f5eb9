"""Words that say too little, or that clients do not take."""

from linted import lint, list_rules

GOOD = '''%%mcp_tool --read-only
def count_orders(region: str) -> int:
    """Number of orders that were shipped this year.

    Args:
        region: EU or US.
    """
    return 3
'''


def test_a_name_that_is_too_long_with_a_clients_prefix_is_a_warning(shell):
    assert list_rules(shell, GOOD.replace("count_orders", "count_" + "x" * 44)) == ["long-name"]


def test_a_tool_that_says_what_it_does_has_no_findings(shell):
    assert lint(shell, GOOD) == []


def test_a_tool_without_a_description_is_an_error(shell):
    [finding] = lint(shell, "%%mcp_tool --read-only\ndef count_orders(): ...")
    assert (finding.rule, finding.severity) == ("no-description", "error")


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
