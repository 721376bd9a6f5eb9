import sys

import pytest

from mcp_notebook.bridge.connect.credentials import Credentials, read_credentials
from mcp_notebook.errors import TokenError


def test_a_file_has_the_token(tmp_path):
    path = tmp_path / "token"
    path.write_text("geheim\n", encoding="utf-8")
    credentials = read_credentials(str(path))
    assert credentials.headers == {"Authorization": "Bearer geheim"}
    assert credentials.place == f"the file {path}"
    assert "geheim" not in repr(credentials)


@pytest.mark.skipif(sys.platform == "win32", reason="has no such modes")
def test_a_file_that_others_can_read_is_told_of(tmp_path, capsys):
    path = tmp_path / "a token"
    path.write_text("geheim\n", encoding="utf-8")
    path.chmod(0o600)
    read_credentials(str(path))
    assert capsys.readouterr().err == ""
    path.chmod(0o644)
    read_credentials(str(path))
    said = capsys.readouterr().err
    assert f"chmod 600 '{path}'" in said
    assert "geheim" not in said


def test_a_variable_has_the_token():
    credentials = read_credentials("env:HUB_TOKEN", {"HUB_TOKEN": "geheim"})
    assert credentials.token == "geheim"
    with pytest.raises(TokenError, match="HUB_TOKEN is not set"):
        read_credentials("env:HUB_TOKEN", {})


def test_without_a_source_there_is_none():
    assert read_credentials(None) is None
    assert Credentials().headers == {}


@pytest.mark.parametrize("text", ["", " \n", "two words", "gehäim", "a\x00b"])
def test_an_invalid_token_is_refused_without_being_shown(tmp_path, text):
    path = tmp_path / "token"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TokenError, match="token") as told:
        read_credentials(str(path))
    assert not text.strip() or text not in str(told.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(TokenError, match=r"absent: No such file.*--token-file"):
        read_credentials(str(tmp_path / "absent"))
