"""Links within the repository lead to a file that is there, and to a heading that it has."""

import json
from urllib.parse import unquote

import pytest
from documents import DOCUMENTS, ROOT, Document

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def _problem(start, link):
    """Return what is wrong with a link; None if nothing is."""
    if link.startswith(("https://", "data:", "cursor://", "vscode:")):
        return None
    address, _, anchor = unquote(link).partition("#")
    target = (start.parent / address).resolve() if address else start
    if not target.is_relative_to(ROOT) or not target.exists():
        return f"{link}: there is no such file"
    if anchor and anchor not in Document(target).anchors:
        return f"{link}: {target.name} has no such heading"
    return None


def _problems(path, document):
    """Return what is wrong with the links of a document, which are meant from this path."""
    problems = [_problem(path, link) for link in document.links]
    return [f"{path.name}: {problem}" for problem in problems if problem]


def test_links_lead_to_files_and_headings_that_exist():
    assert [said for document in DOCUMENTS for said in _problems(document.path, document)] == []


def test_links_of_notebooks_lead_to_files_and_headings_that_exist(tmp_path):
    found = []
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        copy = tmp_path / path.with_suffix(".md").name
        copy.write_text("\n\n".join(texts), encoding="utf-8")
        found += _problems(path, Document(copy))
    assert found == []


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("docs/index.md", None),
        ("docs/connect-a-client.md#by-hand", None),
        ("docs/connect-a-client.md#emacs", "no such heading"),
        ("docs/nothing.md", "no such file"),
        ("../outside.md", "no such file"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(link, problem):
    message = _problem(ROOT / "README.md", link)
    assert message is None if problem is None else problem in message
