import subprocess
import sys

import pytest


@pytest.mark.slow
def test_reading_notebooks_makes_no_parser_of_iris_and_takes_it_from_nobody():
    code = (
        "import sys, mcp_notebook.bridge.headless.notebook, jsonschema;"
        "print([m for m in ('lark', 'rfc3987_syntax') if m in sys.modules]);"
        "assert sys.modules.get('rfc3987_syntax', 'not blocked') is not None"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
