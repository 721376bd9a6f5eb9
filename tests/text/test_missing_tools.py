import time

import pytest

from mcp_notebook.text import missing_tools
from mcp_notebook.text.missing_tools import (
    DroppedTool,
    explain_dead_kernel,
    explain_deleted_notebook,
    explain_departed_kernel,
    explain_dropped,
    explain_failed_link,
    explain_invalid_name,
    explain_left_out,
    explain_lost_link,
    explain_other_bridge,
    explain_other_machine,
    explain_rejection,
    explain_renamed,
    explain_reserved_name,
    explain_shared_name,
    explain_shared_uri,
    explain_taken_name,
    explain_undeclared,
)

NOON = time.mktime((2026, 11, 22, 12, 0, 0, 0, 0, -1))
DELETED = DroppedTool("`top` was deleted.", NOON)
ALL = [
    explain_dropped("sales", "top", DELETED),
    explain_shared_name("sales", "top", "sales_top"),
    explain_reserved_name("sales", "top", "sales_top"),
    explain_taken_name("sales", "top", "sales_top"),
    explain_invalid_name("sales", "größe", "gr_e"),
    explain_rejection("sales", "top", "icons: Input should be a list", ["2025-11-25"]),
    explain_dead_kernel("sales"),
    explain_failed_link("sales", "The kernel of 'sales' did not answer.", is_mismatch=False),
    explain_other_machine("sales", "cluster"),
    explain_other_bridge("sales"),
    explain_undeclared("sales", "top", NOON),
    explain_renamed("sales", "top", "best", NOON),
    explain_departed_kernel("sales", "The kernel was restarted.", NOON),
    explain_lost_link("sales", NOON),
    explain_deleted_notebook("sales", NOON),
    explain_left_out("sales/link.ipynb", "it is a link to a place outside the folder"),
    explain_shared_uri("sales", "weather://today", "weather://sales/today"),
]


def test_every_reason_is_tried_here():
    explained = {name for name in vars(missing_tools) if name.startswith("explain_")}
    assert {name for name in globals() if name.startswith("explain_")} == explained
    assert len(ALL) == len(explained)


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.reason[:20])
def test_each_names_the_notebook_the_cause_and_the_next_step_in_sentences(tool):
    text = str(tool)
    assert text.startswith("sales")
    assert f"{tool.reason} {tool.next_step}" in text
    assert tool.reason.endswith(".")
    assert tool.next_step.endswith(".")


def test_versions_that_do_not_accept_a_tool_are_named():
    assert "MCP 2025-11-25 does not accept it" in ALL[5].reason
    assert "MCP does not accept it" in explain_rejection("sales", "top", "x").reason


def test_times_are_those_of_a_clock_on_the_wall():
    assert "The kernel was restarted at 12:00." in str(ALL[12])
    assert "`top` was deleted. That was at 12:00." in str(explain_dropped("sales", "top", DELETED))
    assert "Its kernel crashed or was killed at 12:00." in str(explain_dead_kernel("sales", NOON))
