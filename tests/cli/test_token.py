import json
import re
import stat
import sys

import pytest
import typer
from typer.testing import CliRunner

from mcp_notebook.bridge.access.token_store import TokenStore
from mcp_notebook.cli import main

VERBS = typer.main.get_command(main.app).commands["token"].load().commands
TOKEN = re.compile(r"[\w-]{43}\n")


@pytest.fixture
def run(home, monkeypatch):
    """Run `mcp-notebook token` in a home folder of its own."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TZ", "UTC")

    def run(*arguments, code=0, env=None):
        environment = {"COLUMNS": "200", "TERM": "dumb"} | (env or {})
        answer = CliRunner().invoke(main.app, ["token", *arguments], env=environment)
        assert answer.exit_code == code, answer.output
        return answer

    return run


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_each_verb_has_an_example_that_the_verb_takes(run, verb):
    example = run(verb, "-h").output.partition("Example: ")[2]
    assert example.startswith(f"mcp-notebook token {verb}")


@pytest.mark.smoke
def test_a_new_token_is_all_that_stdout_has(run):
    added = run("add", "ci", "--tools", "sales.*", "--read-only", "--expires", "7d")
    assert TOKEN.fullmatch(added.stdout)
    assert added.stdout.strip() not in added.stderr
    assert "The token 'ci' allows: sales.*; read-only, until 20" in added.stderr
    assert '{"type": "http", "url": "http://127.0.0.1:8791/mcp", "headers"' in added.stderr


def test_the_list_says_what_each_token_may_do_and_nothing_of_the_token(run):
    tokens = [
        run("add", "b", "--tools", "sales.*,rain", "--tags", "a", "--exclusive").stdout.strip(),
        run("add", "a", "--expires", "30m").stdout.strip(),
    ]
    plain = run("list").stdout
    first, second = (line.split("\t") for line in plain.splitlines())
    assert first[:2] == ["a", "all tools"]
    assert second[:2] == ["b", "sales.*, rain; tagged a; exclusive"]
    assert second[3] == "never"
    data = run("list", "--json").stdout
    a, b = json.loads(data)
    assert a["expires"] > a["created"]
    assert b == {
        "name": "b",
        "tools": ["sales.*", "rain"],
        "tags": ["a"],
        "readOnly": False,
        "exclusive": True,
        "created": b["created"],
        "expires": None,
        "expired": False,
        "void": False,
        "lastUsed": None,
    }
    assert not any(token in plain + data for token in tokens)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
def test_a_token_can_go_to_a_private_file_and_to_nothing_else(run, tmp_path):
    file = tmp_path / "ci's.token"
    file.write_text("old")
    file.chmod(0o644)
    for verb in ("add", "rotate"):
        saved = run(verb, "ci", "--save", str(file))
        assert TOKEN.fullmatch(file.read_text())
        assert saved.stdout == ""
        assert file.read_text().strip() not in saved.stderr
        assert f'--url http://127.0.0.1:8791/mcp --token-file "{file}"' in saved.stderr
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("file", "reason"), [(".", "it is a folder"), ("no/such/folder", "No such file or directory")]
)
def test_a_token_that_could_not_be_saved_is_not_made(run, tmp_path, file, reason):
    refused = run("add", "ci", "--save", str(tmp_path / file), code=1)
    assert reason in str(refused.exception)
    assert "--save" in str(refused.exception)
    assert json.loads(run("list", "--json").stdout) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tools", ""], "--tools is empty"),
        (["--tools", "sales.*,,"], "--tools is empty"),
        (["--tags", " "], "--tags is empty"),
        (["--exclusive"], "--exclusive needs --tools"),
        *(
            (["--expires", text], "is not a duration")
            for text in ("7", "d", "0d", "-1d", "1y", "11111d")
        ),
    ],
    ids=str,
)
def test_a_limit_that_says_nothing_is_refused_and_never_means_everything(run, arguments, sentence):
    assert sentence in run("add", "ci", *arguments, code=2).stderr
    assert json.loads(run("list", "--json").stdout) == []


def test_the_list_says_which_tokens_others_may_know(run, home):
    run("add", "ci")
    TokenStore(home / ".mcp-notebook" / "tokens.json").void_all()
    assert "revoked: other users could read it; rotate it" in run("list").stdout
    assert json.loads(run("list", "--json").stdout)[0]["void"]
    run("rotate", "ci")
    assert "void" not in run("list").stdout
