"""What Tab offers on the lines of the magics."""

import pytest


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("%mcp st", "status"),
        ("%mcp pa", "panel"),
        ("%mcp call ra", "rain"),
        ("%mcp try ra", "rain"),
        ("%mcp call rain ", "city="),
        ("%mcp call rain city=Seattle y", "year="),
        ("%mcp remove ", "rain"),
        ("%mcp log ", "rain"),
        ("%mcp log rain --e", "--errors"),
        ("%mcp_tool ra", "rain"),
        ("%mcp_tool rain --ti", "--timeout"),
        ("%%mcp_tool --rea", "--read-only"),
    ],
)
def test_tab_completes_verbs_tools_and_arguments(rain, typed, offered):
    rain.client.complete(typed, len(typed))
    reply = rain.client.get_shell_msg(timeout=30)
    assert offered in reply["content"]["matches"]
