"""What `mcp-notebook doctor --settings` prints."""

from dataclasses import fields

import pytest
from limits_files import set_limits
from typer.testing import CliRunner

from mcp_notebook.cli import main
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.settings import Settings

WIDE = {"COLUMNS": "200", "TERM": "dumb"}


def show(**env):
    env = {f"MCP_NOTEBOOK_{name}": value for name, value in env.items()}
    return CliRunner().invoke(main.app, ["doctor", "--settings"], env=WIDE | env)


def read(answer):
    """Return value and source of each setting in a table."""
    assert answer.exit_code == 0, answer.output
    rows = [line.split() for line in answer.stdout.splitlines()]
    return {name: (" ".join(value), source) for name, *value, source in rows}


@pytest.mark.smoke
def test_all_settings_are_shown_with_value_and_source(tmp_path):
    limits = set_limits(tmp_path, max_waiting_calls=7)["MCP_NOTEBOOK_LIMITS"]
    table = read(show(HOST="0.0.0.0", META_TOOLS="only", LIMITS=limits, HOME=str(tmp_path)))
    assert list(table) == sorted(setting.name for setting in fields(Settings))
    assert table["host"] == ("0.0.0.0", "MCP_NOTEBOOK_HOST")
    assert table["meta_tools"] == ("only", "MCP_NOTEBOOK_META_TOOLS")
    assert table["max_waiting_calls"] == ("7", limits)
    assert table["limits"] == (limits, "MCP_NOTEBOOK_LIMITS")
    assert table["home"] == (str(tmp_path), "MCP_NOTEBOOK_HOME")
    assert table["task_ttl"] == ("3600.0", "default")
    assert table["port"] == ("none", "default")


def test_files_that_no_setting_names_are_shown_where_they_are(tmp_path):
    table = read(show(HOME=str(tmp_path)))
    assert table["token_file"] == (str(tmp_path / "token"), "default")


def test_tokens_are_not_shown():
    answer = show(TOKEN="very-secret")
    assert "***" in answer.stdout
    assert "very-secret" not in answer.output
    assert "***" not in show().output


def test_an_unknown_setting_is_named_with_the_one_that_was_meant():
    answer = show(LIMIT="strict", ZZZ_ZZZ="1")
    assert (
        "The variable MCP_NOTEBOOK_LIMIT is set, but no setting has this name. "
        "Did you mean MCP_NOTEBOOK_LIMITS?"
    ) in answer.stderr
    assert "MCP_NOTEBOOK_ZZZ_ZZZ is set" in answer.stderr
    assert show().stderr == ""


def test_a_wrong_value_is_refused_as_by_the_command_that_would_use_it():
    answer = show(LIMITS="many")
    assert isinstance(answer.exception, SettingsError)
    assert "MCP_NOTEBOOK_LIMITS='many' is not valid" in str(answer.exception)


def test_a_value_cannot_move_the_cursor():
    answer = show(HOST="\x1b[2Jevil")
    assert "\x1b" not in answer.output
    assert r"'\x1b[2Jevil'" in answer.stdout


def test_settings_are_of_no_client():
    answer = CliRunner().invoke(main.app, ["doctor", "cursor", "--settings"], env=WIDE)
    assert answer.exit_code == 2
    assert "--settings takes no client: `mcp-notebook doctor --settings`" in answer.output
