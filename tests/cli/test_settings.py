"""What `mcp-notebook settings` prints."""

import json
from dataclasses import fields
from pathlib import Path

import pytest
from limits_files import set_limits
from typer.testing import CliRunner

from mcp_notebook.cli import main
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.settings import Settings

WIDE = {"COLUMNS": "200", "TERM": "dumb"}


def show(*arguments, **env):
    env = {f"MCP_NOTEBOOK_{name}": value for name, value in env.items()}
    return CliRunner().invoke(main.app, ["settings", *arguments], env=WIDE | env)


def read(answer):
    """Return value and source of each setting in a table."""
    assert answer.exit_code == 0, answer.output
    rows = [line.split() for line in answer.stdout.splitlines()]
    return {name: (" ".join(value), source) for name, *value, source in rows}


@pytest.mark.smoke
def test_all_settings_are_shown_with_value_and_source(tmp_path):
    limits = set_limits(tmp_path, max_calls=7)["MCP_NOTEBOOK_LIMITS"]
    table = read(show("--host", "0.0.0.0", "--meta-tools", LIMITS=limits, HOME=str(tmp_path)))
    assert list(table) == sorted(setting.name for setting in fields(Settings))
    assert table["host"] == ("0.0.0.0", "--host")
    assert table["meta_tools"] == ("True", "--meta-tools")
    assert table["max_calls"] == ("7", limits)
    assert table["limits"] == (limits, "MCP_NOTEBOOK_LIMITS")
    assert table["home"] == (str(tmp_path), "MCP_NOTEBOOK_HOME")
    assert table["max_pictures"] == ("8", "default")
    assert table["port"] == ("none", "default")


def test_files_that_no_setting_names_are_shown_where_they_are(tmp_path):
    table = read(show(HOME=str(tmp_path)))
    assert table["token_file"] == (str(tmp_path / "token"), "default")
    assert table["audit_file"] == (str(tmp_path / "audit.jsonl"), "default")


def test_an_option_wins_over_its_variable_and_a_flag_that_is_not_given_does_not():
    table = read(show("--port", "0", PORT="2", META_TOOLS="1"))
    assert table["port"] == ("0", "--port")
    assert table["meta_tools"] == ("True", "MCP_NOTEBOOK_META_TOOLS")


def test_the_value_of_meta_tools_may_be_left_out():
    assert read(show("--meta-tools=only"))["meta_tools"] == ("only", "--meta-tools")
    assert read(show("--meta-tools", "--read-only"))["meta_tools"] == ("True", "--meta-tools")
    assert read(show(META_TOOLS="only"))["meta_tools"] == ("only", "MCP_NOTEBOOK_META_TOOLS")
    answer = show("--meta-tools=some")
    assert str(answer.exception) == (
        "--meta-tools='some' is not valid: it must be yes or no, or 'only'."
    )


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_tokens_are_not_shown(arguments):
    answer = show(*arguments, TOKEN="very-secret")
    assert "***" in answer.stdout
    assert "very-secret" not in answer.output
    assert "***" not in show(*arguments).output


def test_programs_get_one_object_with_the_values_as_json():
    roots = "/a:/b"
    settings = json.loads(show("--json", ALLOWED_ROOTS=roots, LIMITS="strict").stdout)
    assert settings.keys() == {setting.name for setting in fields(Settings)}
    assert settings["max_calls"] == {
        "value": 128,
        "source": "MCP_NOTEBOOK_LIMITS",
        "variable": "MCP_NOTEBOOK_LIMITS",
    }
    assert settings["allowed_roots"]["value"] == ["/a", "/b"]
    assert settings["port"] == {
        "value": None,
        "source": "default",
        "variable": "MCP_NOTEBOOK_PORT",
    }
    assert settings["home"]["value"] == str(Path.home() / ".mcp-notebook")


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


def test_a_wrong_option_is_refused_as_by_serve():
    answer = show("--hots", "x")
    assert answer.exit_code == 2
    assert "No such option: --hots" in answer.stderr


def test_an_unknown_option_is_refused():
    answer = show("cursor")
    assert answer.exit_code == 2
    assert "takes no notebook (cursor)" in " ".join(answer.output.split())


def test_a_value_cannot_move_the_cursor():
    answer = show(HOST="\x1b[2Jevil")
    assert "\x1b" not in answer.output
    assert r"'\x1b[2Jevil'" in answer.stdout


def test_options_that_are_lists_count_only_if_they_are_given():
    shown = json.loads(show("--json", "--tools", "a", "--tools", "b,c", TAGS="x").stdout)
    described = {name: shown[name] for name in ("tools", "tags")}
    assert "--tools" in str(described["tools"])
    assert "MCP_NOTEBOOK_TAGS" in str(described["tags"])
