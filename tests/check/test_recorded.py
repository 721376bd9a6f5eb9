"""The file of answers beside a notebook."""

import pytest

from mcp_notebook.check.recorded import write_recorded
from mcp_notebook.check.subject import Subject
from mcp_notebook.errors import NotebookError


def test_a_file_of_answers_that_cannot_be_written_stays_as_it_was(tmp_path):
    resource = pytest.importorskip("resource")
    place = tmp_path / "a.answers.json"
    place.write_text('{"add": {"{}": ["3"]}}')
    subject = Subject(notebook=tmp_path / "a.ipynb", cells=[], tools=[])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))  # a full disk
    try:
        with pytest.raises(NotebookError, match=r"a\.answers\.json cannot be written: "):
            write_recorded(subject)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert place.read_text() == '{"add": {"{}": ["3"]}}'
    assert list(tmp_path.iterdir()) == [place]
