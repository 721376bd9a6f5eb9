# ruff: noqa: INP001 - a script, no package
"""Makes the README's picture by really running the README's first three cells and calling the tool.

Run by hand, in an environment with the extras ``demo``, whenever those cells change:
``python docs/make_pictures.py``. `tests/test_readme.py` checks that it still works.
"""

import os
import re
import sys
import tempfile
from base64 import b64decode
from pathlib import Path

from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

ROOT = Path(__file__).parent.parent
CALL = "%mcp call plot_rain year=2015"


def picture() -> bytes:
    """Return the PNG that a client gets for the README's example."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    cells = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)[:3]
    notebook = new_notebook(cells=[new_code_cell(source) for source in [*cells, CALL]])
    with tempfile.TemporaryDirectory() as home:  # no client of the user's shall see this kernel
        client = NotebookClient(notebook, kernel_name="python3", timeout=120)
        client.execute(env=os.environ | {"MCP_NOTEBOOK_HOME": home})
    (output,) = notebook.cells[-1].outputs
    return b64decode(output.data["image/png"])


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    (folder / "plot_rain.png").write_bytes(picture())
