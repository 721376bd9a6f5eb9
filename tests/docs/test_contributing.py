"""The contributors' guide names what the tree has."""

import re

from documents import ROOT, Document

PACKAGE = ROOT / "mcp_notebook"
CONTRIBUTING = Document(ROOT / "CONTRIBUTING.md")


def _named_paths(document):
    return [text for text in document.inline if re.fullmatch(r"[\w.]+(/[\w.]*)*", text)]


def test_each_file_and_folder_that_the_guide_names_exists():
    named = {text for text in _named_paths(CONTRIBUTING) if "/" in text or text.endswith(".py")} - {
        "__init__.py",
        "tools/call",
    }  # the latter is MCP's method
    assert len(named) > 20
    folders = (PACKAGE, ROOT, ROOT / "tests" / "e2e")
    found = {path for path in named if any((folder / path).exists() for folder in folders)}
    assert named - found == set()


def test_the_walk_of_a_call_names_a_module_at_each_step():
    walk = CONTRIBUTING.text.partition("## The walk of one call\n")[2].partition("\n## ")[0]
    steps = re.findall(r"^\d+\. .+$", walk, re.MULTILINE)
    assert len(steps) >= 8
    for step in steps:
        assert re.search(r"`(kernel|bridge)/[\w/]+(\.py|/)`", step), step
