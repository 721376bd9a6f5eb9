"""``%mcp config``: the same lines as the command's, to copy from the notebook."""

import json
import sys

import pytest
from IPython.core.error import UsageError

from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.errors import ClientError
from mcp_notebook.kernel.notebook.magics.client_config import build_config
from mcp_notebook.settings.settings import Settings


def config(line, **settings):
    return build_config(Settings(**settings), line, {})


@pytest.mark.parametrize("name", CLIENTS)
def test_each_client_gets_the_command_of_this_kernels_environment(name):
    bundle = config(name)
    assert sys.executable in bundle["text/plain"]
    assert "stdio" in bundle["text/plain"]
    assert f"mcp-notebook install {name}" in bundle["text/plain"]
    assert "<pre" in bundle["text/html"]


def test_what_is_copied_is_valid():
    text = config("cursor")["text/plain"].partition("\n\n")[0]
    assert json.loads(text)["mcpServers"]["notebook"]["args"][-1] == "stdio"


def test_a_client_that_has_links_is_opened_by_one():
    bundle = config("cursor")
    assert "cursor://" in bundle["text/plain"]
    assert ">Add to Cursor</a>" in bundle["text/html"]


def test_over_http_the_token_is_not_shown():
    bundle = config("cursor --http", token="hunter2")
    assert "/mcp" in bundle["text/plain"]
    assert "hunter2" not in str(bundle)


def test_without_a_client_all_are_named_with_their_lines():
    text = config("")["text/plain"]
    for name in CLIENTS:
        assert f"%mcp config {name}" in text
        assert f"mcp-notebook install {name}" in text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cursor vscode", "takes one client, not 2"),
        ("--htp cursor", "Did you mean `--http`?"),
        ("--http", "Which client?"),
    ],
)
def test_a_line_that_cannot_be_followed_says_what_to_write(line, message):
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        config(line)


def test_a_client_that_is_not_known_is_named_with_those_that_are():
    with pytest.raises(ClientError, match="Did you mean cursor"):
        config("cursr")
