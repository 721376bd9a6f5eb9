"""Where another environment gets this package from."""

import json
import subprocess
from importlib.metadata import distribution

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager
from IPython.utils.text import DollarFormatter

from mcp_notebook.discovery import own_requirement
from mcp_notebook.discovery.own_requirement import find_own_requirement, find_plain_requirement


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


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("file:///home/ada/mcp-notebook", "file:///home/ada/mcp-notebook"),
        ("https://h/mcp_notebook-0.1.0+a1-py3.whl", "https://h/mcp_notebook-0.1.0+a1-py3.whl"),
        ("file:///home/ada/my%20wheels/x~1/m.whl", "file:///home/ada/my%20wheels/x~1/m.whl"),
        ("file:///tmp/R&D%20(a)%20$HOME/p", ""),
        ("file:///c:/%CD%80", ""),
        ("--index-url=https://h", ""),
        ("file:///p\n", ""),
    ],
)
def test_a_plain_requirement_is_offered_and_no_other(monkeypatch, url, expected):
    use_origin(monkeypatch, url)
    assert find_plain_requirement() == expected


@given(rest=st.text("ab1.:/@+=-_~%{}$!;&|<>()*?[]#^,'\"`\\ \t\n\0\u00e9", max_size=12))
def test_no_plain_requirement_is_expanded_by_ipython_or_a_shell(rest):
    with pytest.MonkeyPatch.context() as patch:
        use_origin(patch, f"file:///{rest}")
        plain = find_plain_requirement()
    if plain:
        magic = TransformerManager().transform_cell(f"%pip install {plain}")
        assert magic == f"get_ipython().run_line_magic('pip', 'install {plain}')\n"
        words = DollarFormatter().format(f"printf '<%s>' {plain}", a="x", b="x")
        shell = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=True)
        assert shell.stdout == f"<file:///{rest}>"


def use_origin(patch, url):
    origin = json.dumps({"url": url, "dir_info": {}})
    patch.setattr(type(distribution("mcp-notebook")), "read_text", lambda _, __: origin)
