"""Packages that offer tools, installed as pip does."""

from sample_files import write_file

from mcp_notebook.kernel.tools.package_tools import GROUP

ACME = '''
from typing import Literal
from mcp_notebook import mcp_tool, mcp_tools

loaded = True

@mcp_tool(read_only=True)
def vat(country: Literal["DE", "FR"], net: float) -> float:
    """Add the value-added tax."""
    return round(net * {"DE": 1.19, "FR": 1.2}[country], 2)

@mcp_tool(name="due")
def due_date(days: int) -> str:
    """Tell the due date."""
    return f"in {days} days"

same = vat

def helper(): ...

@mcp_tools(prefix="ledger_")
class Ledger:
    def __init__(self):
        self.total = 0

    @mcp_tool
    def book(self, amount: int) -> int:
        """Book an amount."""
        self.total += amount
        return self.total
'''


def install(folder, module, code, name="acme-tools", **points):
    """Install a package as pip does: its module, and what its entry points name."""
    write_file(folder / f"{module}.py", code)
    info = folder / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir()
    write_file(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    lines = [f"{point} = {target}" for point, target in points.items()]
    write_file(info / "entry_points.txt", "\n".join([f"[{GROUP}]", *lines]) + "\n")
