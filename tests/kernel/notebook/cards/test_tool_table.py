"""The list of tools that ``%mcp list`` shows."""

from mcp_notebook.kernel.notebook.cards.tool_table import build_table
from mcp_notebook.kernel.tools.declared_tool import make_tool


def rain(city: str):
    """Rain per year."""


def double(n: int = 2) -> list[int]:
    """Twice."""


def test_a_table_has_a_line_for_each_tool():
    html, text = build_table([make_tool(rain), make_tool(double)]).values()
    assert text == "rain(city: str)     Rain per year.\ndouble(n: int = 2)  Twice."
    assert html.count("<tr>") == 2
