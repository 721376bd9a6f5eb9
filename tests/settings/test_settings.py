import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.limits import Limits, is_limit
from mcp_notebook.settings.settings import Settings

OPEN = {limit.name: limit.metadata["sets"]["open"] for limit in fields(Limits)}


def test_a_given_value_wins_over_the_environment():
    settings = Settings.from_environment({"MCP_NOTEBOOK_PORT": "1234"}, port=4321)
    assert settings.port == 4321


@pytest.mark.smoke
def test_the_environment_wins_over_the_default():
    assert Settings.from_environment({"MCP_NOTEBOOK_PORT": "1234"}).port == 1234


def test_none_and_an_empty_variable_count_as_not_given():
    env = {"MCP_NOTEBOOK_PORT": "1234", "MCP_NOTEBOOK_TOKEN": ""}
    settings = Settings.from_environment(env, port=None, token=None)
    assert settings.port == 1234
    assert settings.token is None


def test_everything_lies_under_home_unless_said_otherwise(tmp_path):
    settings = Settings.from_environment({"MCP_NOTEBOOK_HOME": str(tmp_path)})
    assert settings.records_folder == tmp_path / "kernels"
    assert settings.bridge_file == tmp_path / "bridge.json"
    assert settings.token_path == tmp_path / "token"
    assert Settings(home=tmp_path, token_file=Path("elsewhere")).token_path == Path("elsewhere")


def test_the_default_home_needs_nothing_but_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings.from_environment({}).home == tmp_path / ".mcp-notebook"


def test_a_tilde_in_a_path_is_the_users_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings.from_environment({"MCP_NOTEBOOK_HOME": "~/here"}).home == tmp_path / "here"


def test_a_home_and_a_token_are_read_without_loading_pydantic():
    env = {"MCP_NOTEBOOK_HOME": "~/here", "MCP_NOTEBOOK_TOKEN": "secret"}
    code = f"""
import sys
from mcp_notebook.settings.settings import Settings
settings = Settings.from_environment({env!r})
print(settings.home.name, settings.token, "pydantic" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["here", "secret", "False"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MCP_NOTEBOOK_PORT", "http"),
        ("MCP_NOTEBOOK_PORT", "65536"),
        ("MCP_NOTEBOOK_PORT", "-1"),
        ("MCP_NOTEBOOK_IDLE_MINUTES", "nan"),
        ("MCP_NOTEBOOK_CALL_TIMEOUT", "-1"),
        ("MCP_NOTEBOOK_WATCH", "perhaps"),
        ("MCP_NOTEBOOK_HOME", "~no-such-user-here/x"),
    ],
)
def test_a_wrong_value_is_refused_with_its_source_and_the_value(variable, value):
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({variable: value})
    assert f"{variable}={value!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "advice"),
    [
        ("MCP_NOTEBOOK_PORT", "abc", "it must be a whole number"),
        ("MCP_NOTEBOOK_PORT", "1.5", "it must be a whole number"),
        ("MCP_NOTEBOOK_IDLE_MINUTES", "-1", "it must be greater than or equal to 0"),
        ("MCP_NOTEBOOK_IDLE_MINUTES", "soon", "it must be a number"),
        ("MCP_NOTEBOOK_IDLE_MINUTES", "inf", "it must be a number"),
        ("MCP_NOTEBOOK_PORT", "70000", "it must be less than or equal to 65535"),
        ("MCP_NOTEBOOK_WATCH", "perhaps", "it must be yes or no"),
        ("MCP_NOTEBOOK_AUDIT", "no", "it must be 'hash', 'full', 'none' or 'off'"),
    ],
)
def test_a_wrong_value_is_refused_with_what_it_must_be(variable, value, advice):
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({variable: value})
    assert str(caught.value) == f"{variable}={value!r} is not valid: {advice}."


def test_a_wrong_option_is_named_as_the_command_line_names_it():
    with pytest.raises(SettingsError, match=r"--idle-minutes='-3'"):
        Settings.from_environment({}, idle_minutes=-3)


def test_an_option_that_does_not_exist_is_a_programming_error():
    with pytest.raises(TypeError, match="prot"):
        Settings.from_environment({}, prot=3)


def test_the_token_is_shown_nowhere():
    assert "secret" not in repr(Settings(token="secret"))
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({}, token=["secret"])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("token", "place"),
    [
        (None, "the file /my home/token"),
        ("secret", "the environment variable MCP_NOTEBOOK_TOKEN"),
    ],
)
def test_the_place_of_the_token_can_be_shown(token, place):
    assert Settings(home=Path("/my home"), token=token).token_place == place


def test_each_option_has_a_variable_of_its_own():
    variables = [option.metadata["env"] for option in fields(Settings) if not is_limit(option)]
    assert len(set(variables)) == len(variables)
    assert all(variable.startswith("MCP_NOTEBOOK_") for variable in variables)


def test_a_child_with_our_environment_has_our_settings():
    settings = Settings(
        home=Path("state"),
        port=0,
        token="secret",
        call_timeout=1.5,
        watch=True,
        allowed_roots=(Path("data"), Path("/shared")),
        tools=("sales.*", "rain"),
        read_only=True,
        limits="open",
        **OPEN,
    )
    child = Settings.from_environment(settings.environment())
    assert child == replace(
        settings,
        home=Path("state").absolute(),
        allowed_roots=(Path("data").absolute(), Path("/shared")),
    )


def test_words_have_commas_between_them():
    settings = Settings.from_environment({"MCP_NOTEBOOK_TOOLS": "sales.*, ~rain"})
    assert settings.tools == ("sales.*", "~rain")
    assert Settings.from_environment({}, exclude=["a,b", "c"]).exclude == ("a", "b", "c")
    assert Settings.from_environment({"MCP_NOTEBOOK_EXCLUDE": ""}).exclude == ()


@pytest.mark.parametrize("text", [",", " ", "a,,b", "a,"])
def test_a_limit_without_a_word_is_refused_and_never_means_no_limit(text):
    with pytest.raises(
        SettingsError,
        match=r"MCP_NOTEBOOK_TOOLS=.* it must be one or several "
        r"words",
    ):
        Settings.from_environment({"MCP_NOTEBOOK_TOOLS": text})
    for given in (text, [text], [""]):
        with pytest.raises(SettingsError, match=r"--exclude=.* is not valid"):
            Settings.from_environment({}, exclude=given)


def test_allowed_roots_are_several_paths_as_in_path(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    given = os.pathsep.join(["/data", "", "~/more", "relative"])
    settings = Settings.from_environment({"MCP_NOTEBOOK_ALLOWED_ROOTS": given})
    assert settings.allowed_roots == (Path("/data"), tmp_path / "more", Path("relative"))
    assert Settings.from_environment({}).allowed_roots == ()
    assert Settings.from_environment(Settings().environment()).allowed_roots == ()
    given_ = Settings.from_environment({}, allowed_roots=["~/x", Path("/y")])
    assert given_.allowed_roots == (tmp_path / "x", Path("/y"))
    with pytest.raises(SettingsError, match="MCP_NOTEBOOK_ALLOWED_ROOTS='~no-such-user-here/x'"):
        Settings.from_environment({"MCP_NOTEBOOK_ALLOWED_ROOTS": "~no-such-user-here/x"})
