import pytest

from mcp_notebook.errors import (
    AmbiguousTool,
    DefinitionError,
    NoSuchTool,
    TimedOut,
    UnknownResource,
    UnknownTool,
    VersionMismatch,
)


def test_a_definition_error_is_shown_in_one_line():
    assert DefinitionError("No.")._render_traceback_() == ["DefinitionError: No."]


def test_a_tool_that_the_notebook_does_not_have_is_told_with_the_closest_one_or_all():
    assert str(NoSuchTool("tpo", ("top", "rain"))).endswith("did you mean 'top'?")
    assert str(NoSuchTool("x", ("top", "rain"))).endswith("tools: top, rain.")
    assert str(NoSuchTool("x")).endswith("tools: none.")
    with pytest.raises(KeyError):
        raise NoSuchTool("x")


def test_an_unknown_tool_is_told_with_what_was_probably_meant():
    text = str(UnknownTool("topp", ("top", "rain")))
    assert text == "Unknown tool: 'topp'. Did you mean 'top'? The tools are: top, rain."


def test_an_ambiguous_name_is_told_with_the_names_to_use():
    assert "'a_top' or 'b_top'" in str(AmbiguousTool("top", ("a_top", "b_top")))


def test_an_unknown_resource_says_whether_it_has_expired():
    assert "it has expired" in str(UnknownResource("notebook://k/1", expired=True))
    assert "it does not exist" in str(UnknownResource("notebook://k/1"))
    assert "does not begin with notebook://" in str(UnknownResource("table.csv"))
    assert str(UnknownResource("notebook://k/1", "Gone.")) == "Gone."


def test_a_time_limit_says_who_set_it():
    assert "--timeout" in str(TimedOut("top", 5, is_own=True))
    assert "MCP_NOTEBOOK_CALL_TIMEOUT" in str(TimedOut("top", 5, is_own=False))
    assert "run='fork'" in str(TimedOut("top", 5, is_own=False, is_set=False))


@pytest.mark.parametrize(
    ("kernel", "bridge", "older", "place"),
    [
        (1, 2, "kernel", "in the notebook's environment"),
        (2, 1, "bridge", "environment that starts"),
    ],
)
def test_a_mismatch_says_which_side_to_upgrade_and_where(kernel, bridge, older, place):
    text = str(VersionMismatch(kernel=kernel, bridge=bridge))
    assert f"Upgrade mcp-notebook on the {older}'s side: `pip install -U mcp-notebook`" in text
    assert place in text
