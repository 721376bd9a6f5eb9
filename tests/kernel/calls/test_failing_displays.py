"""A display method that fails: what IPython says about it is in nobody's notebook."""

import pytest
from live import Link, kernel_with, record_of, text_of

kernel = kernel_with(
    "%load_ext mcp_notebook",
    '''
%%mcp_tool
import enum

class Tree(list):
    def __repr__(self):
        return f"Tree({list(self)})"

    def _repr_svg_(self):
        raise ModuleNotFoundError("svgling")

class Color(enum.Enum):
    RED = enum.auto()
    BLUE = enum.auto()

def grow() -> Tree:
    """Grow."""
    return Tree(["a"])

async def grow_slowly() -> Tree:
    """Grow."""
    return Tree(["a"])

def paint(color: Color = Color.BLUE) -> Color:
    """Paint."""
    return color
''',
)


@pytest.mark.parametrize("tool", ["grow", "grow_slowly"])
def test_a_failing_display_method_shows_no_traceback_in_the_notebook(tool, kernel):
    with Link(record_of(kernel)) as link:
        assert text_of(link.call(tool)) == "Tree(['a'])"
    output = kernel.run(f"%mcp call {tool}")
    assert "Tree(['a'])" in output.text
    assert "svgling" not in output.text


def test_an_enumeration_that_only_counts_is_its_names_for_clients(kernel):
    with Link(record_of(kernel)) as link:
        assert text_of(link.call("paint")) == "BLUE"
        assert text_of(link.call("paint", color="RED")) == "RED"
        assert "allowed: 'RED' | 'BLUE'" in text_of(link.call("paint", color="GREEN"))
