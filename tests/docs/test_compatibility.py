"""The versions that the site names are those of pyproject.toml and of the code."""

import json
import re
import tomllib

from documents import ROOT, page

from mcp_notebook.protocol.versions import VERSIONS
from mcp_notebook.wire.messages import PROTOCOL_VERSION

TEXT = page("operate/index.md").text
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _row(title):
    (row,) = re.findall(rf"^\| {title} \| (.*?) \|", TEXT, re.MULTILINE)
    return row


def test_the_versions_of_python_are_those_of_the_metadata():
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: 3." in line]
    assert _row("Python") == ", ".join(named)


def test_the_versions_of_jupyter_are_the_lowest_that_are_tried():
    extras = PROJECT["optional-dependencies"]["browser"]
    assert f"ipykernel>={_row('ipykernel').split()[0]}" in PROJECT["dependencies"]
    assert f"jupyterlab>={_row('JupyterLab').split()[0]}" in extras
    oldest = re.search(r"Notebook ([\d.]+)", TEXT)[1]
    assert f"notebook>={oldest}" in extras


def test_the_versions_of_vs_code_are_those_of_the_extension_and_of_its_tests():
    oldest = json.loads((ROOT / "vscode/package.json").read_text())["engines"]["vscode"]
    assert oldest == f"^{_row('VS Code').split()[0]}.0"
    tried = json.loads((ROOT / "tests/vscode/package.json").read_text())["dependencies"]
    minor = tried["code-server"].split(".")[1]
    assert f"1.{minor} (code-server)" in TEXT


def test_the_versions_of_mcp_are_those_of_the_code():
    assert _row("MCP").split(", ") == list(VERSIONS)


def test_the_protocol_of_the_link_is_the_current_one():
    assert f"Protocol version {PROTOCOL_VERSION}. " in TEXT
