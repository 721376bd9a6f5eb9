"""What Tab offers on the lines of the magics."""

import pytest


@pytest.fixture(scope="module")
def notebook(shared_kernel, rain_cell):
    """A notebook with the tool `rain`, which completing changes nothing about.

    To empty it for each case, as others do, would take longer than the case: what completions
    leave behind is much to look through for garbage.
    """
    shared_kernel.ok(rain_cell)
    return shared_kernel


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("%mcp st", "status"),
        ("%mcp pa", "panel"),
        ("%mcp call ra", "rain"),
        ("%mcp try ra", "rain"),
        ("%mcp call rain ", "city="),
        ("%mcp call rain city=Seattle y", "year="),
        ("%mcp help re", "record"),
        ("%mcp serve ", "--stop"),
        ("%mcp record --h", "--here"),
        ("%mcp log ", "rain"),
        ("%mcp log rain --e", "--errors"),
        ("%mcp_tool ra", "rain"),
        ("%mcp_tool rain --ti", "--timeout"),
        ("%%mcp_tool --rea", "--read-only"),
    ],
)
def test_tab_completes_verbs_tools_and_arguments(notebook, typed, offered):
    notebook.client.complete(typed, len(typed))
    reply = notebook.client.get_shell_msg(timeout=30)
    assert offered in reply["content"]["matches"]


def test_a_name_that_ipython_would_expand_is_not_offered(notebook):
    notebook.ok(
        "from mcp_notebook import Tool, registry\nnames = ['a-b', '{fired}', '$x', 'b c', \"'\"]\n"
        "schema = {'type': 'object', 'properties': {name: {} for name in names}}\n"
        "registry.add(Tool(name='odd', input_schema=schema, handler=lambda **a: 1))"
    )
    notebook.client.complete("%mcp call odd ", len("%mcp call odd "))
    matches = notebook.client.get_shell_msg(timeout=30)["content"]["matches"]
    assert [name for name in matches if name.endswith("=")] == ["a-b="]
