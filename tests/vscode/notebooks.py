"""The cells of the tests' notebooks."""

LOAD = "%load_ext mcp_notebook"
RAIN = '''%%mcp_tool
def rain(day: int) -> str:
    """Return the rain of a day."""
    return f"{day} mm" if day > 0 else 1 / 0
'''
DROP = '''%%mcp_tool --confirm
def drop(table: str) -> str:
    """Drop a table."""
    return f"dropped {table}"
'''
PLOT = '''%%mcp_tool
def plot() -> object:
    """Draw a line."""
    from PIL import Image
    return Image.new("RGB", (40, 20), "teal")
'''
WAIT = '''%%mcp_tool
def wait() -> str:
    """Wait for a file that nobody writes."""
    import threading
    threading.Event().wait()
'''
UNLOAD = """
from pathlib import Path
if Path("unload").exists():
    get_ipython().run_line_magic("unload_ext", "mcp_notebook")
"""
