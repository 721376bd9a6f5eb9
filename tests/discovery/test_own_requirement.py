"""Where another environment gets this package from."""

import json
from importlib.metadata import distribution

import pytest

from mcp_notebook.discovery import own_requirement
from mcp_notebook.discovery.own_requirement import find_own_requirement


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (None, ["mcp-notebook==0.1.0"]),
        ({"url": "file:///d/m.whl", "archive_info": {}}, ["mcp-notebook @ file:///d/m.whl"]),
        ({"url": "file:///d", "dir_info": {}}, ["mcp-notebook @ file:///d"]),
        (
            {"url": "file:///d", "dir_info": {"editable": True}},
            ["--editable", "mcp-notebook @ file:///d"],
        ),
        (
            {"url": "https://h/r", "vcs_info": {"vcs": "git", "commit_id": "a1"}},
            ["mcp-notebook @ git+https://h/r@a1"],
        ),
    ],
)
def test_the_environment_gets_this_package_from_where_it_came(monkeypatch, origin, words):
    ours = distribution("mcp-notebook")
    text = None if origin is None else json.dumps(origin)
    monkeypatch.setattr(type(ours), "read_text", lambda _, __: text)
    monkeypatch.setattr(own_requirement, "__version__", "0.1.0")
    assert find_own_requirement() == words
