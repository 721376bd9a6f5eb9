"""What the OAuth file may say, and what its errors name."""

from dataclasses import replace

import pytest

from mcp_notebook.bridge.access.caller import EVERYTHING, Permissions
from mcp_notebook.bridge.access.oauth.configuration import read_configuration
from mcp_notebook.errors import SettingsError

ISSUER = 'issuer = "https://login.example.com/realm"\n'
SCOPES = """
[scopes."notebook:read"]
read_only = true
tools = ["sales.*"]
tags = ["report"]
[scopes.everything]
"""


def read(tmp_path, text):
    path = tmp_path / "oauth.toml"
    path.write_text(text)
    return read_configuration(path)


def test_a_scope_is_some_permissions_and_an_empty_one_is_all_of_them(tmp_path):
    configuration = read(tmp_path, ISSUER + SCOPES)
    grants = {name: grant.to_permissions() for name, grant in configuration.scopes.items()}
    assert grants == {
        "notebook:read": Permissions(
            tools=("sales.*",), tags=frozenset({"report"}), read_only=True
        ),
        "everything": replace(EVERYTHING, names_proposals=True),
    }
    assert configuration.issuer == "https://login.example.com/realm"
    assert configuration.users == frozenset()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SCOPES, "either `issuer` or `jupyterhub`"),
        (f'{ISSUER}jupyterhub = "https://hub.example.com/hub/api"{SCOPES}', "either `issuer` or"),
        (ISSUER, r"scopes: it is required\.$"),
        (f"{ISSUER}[scopes]", "scopes: .* at least 1"),
        (f"issuer = 3{SCOPES}", "issuer: it must be a valid string"),
        (f'issuer = "http://login.example.com"{SCOPES}', "issuer: it must begin with https://"),
        (f'issuer = "login.example.com"{SCOPES}', "issuer: it must be a URL"),
        (f'issuer = "https://u:p@login.example.com"{SCOPES}', "issuer: it must be a URL"),
        (f'{ISSUER}resource = "https://a.example/mcp?x=1"{SCOPES}', "resource: it must be a URL"),
        (
            f'{ISSUER}audiense = "a"{SCOPES}',
            r"audiense: there is no such key\. Did you mean 'audience'\?$",
        ),
        (
            f"{ISSUER}[scopes.a]\nreadonly = true",
            r"scopes.a.readonly: there is no such key\. Did you mean 'read_only'",
        ),
        (f'jupyterhub = "https://h.example/hub/api"\naudience = "a"{SCOPES}', "have no audience"),
        ("issuer = ", "it is not valid TOML: Invalid value"),
        ("\x00", "cannot be used"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_the_file_and_the_key(tmp_path, text, problem):
    with pytest.raises(SettingsError, match=problem) as error:
        read(tmp_path, text)
    assert "oauth.toml" in str(error.value)


def test_an_issuer_on_this_machine_needs_no_encryption(tmp_path):
    assert read(tmp_path, f'issuer = "http://127.0.0.1:9000/"{SCOPES}').issuer


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(SettingsError, match=r"used: No such file or directory\.$"):
        read_configuration(tmp_path / "none.toml")
