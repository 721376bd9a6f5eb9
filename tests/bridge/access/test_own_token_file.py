import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bridges import NEEDS_TWO_USERS, TOKEN, bridge
from live import kernel_env

from mcp_notebook.bridge.access.own_token_file import read_token, renew_token
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.private_files import write_private
from mcp_notebook.settings.settings import Settings

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="file modes")


def _mode(path):
    return path.stat().st_mode & 0o777


@POSIX
def test_a_token_is_made_that_only_the_user_can_read(settings):
    token = read_token(settings)
    assert len(token) == 43
    assert _mode(settings.token_path) == 0o600
    assert _mode(settings.home) == 0o700
    assert [path.name for path in settings.home.iterdir()] == ["token"]


def test_the_token_stays_the_same_from_day_to_day(settings):
    assert read_token(settings) == read_token(settings)


def test_each_user_has_another_token(home):
    tokens = {read_token(Settings(home=home / name)) for name in "abc"}
    assert len(tokens) == 3


@POSIX
def test_a_folder_that_the_user_names_keeps_its_mode(home):
    """It may be the home folder or one that is shared."""
    home.chmod(0o755)
    path = home / "token of mine"
    token = read_token(Settings(home=home / "state", token_file=path))
    assert path.read_text() == f"{token}\n"
    assert _mode(path) == 0o600
    assert _mode(home) == 0o755


def test_a_file_other_than_a_token_file_is_left_unchanged(home):
    other = home / "notes.txt"
    other.write_text("no token")
    for path in (home, other):
        path.chmod(0o755)
        with pytest.raises(SettingsError):
            read_token(Settings(home=home / "home", token_file=path))
        assert _mode(path) == 0o755


def test_folders_of_a_named_file_are_made(home):
    path = home / "a" / "b" / "token"
    assert read_token(Settings(home=home / "state", token_file=path)) == path.read_text().strip()


STARTER = (
    "import sys\n"
    "from pathlib import Path\n"
    "from mcp_notebook.bridge.access.own_token_file import read_token\n"
    "from mcp_notebook.settings.settings import Settings\n"
    "print('ready', flush=True)\n"
    "sys.stdin.readline()\n"
    "print(read_token(Settings(home=Path(sys.argv[1]))))\n"
)


def test_bridges_that_start_at_once_have_one_token(home):
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", STARTER, home / "state"],
            env=kernel_env(home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for starter in starters:
        assert starter.stdout.readline() == "ready\n"
    for starter in starters:
        starter.stdin.write("\n")
        starter.stdin.flush()
    tokens = {starter.communicate(timeout=60)[0] for starter in starters}
    assert tokens == {(home / "state" / "token").read_text()}
    assert [path.name for path in (home / "state").iterdir()] == ["token"]


def test_space_around_the_token_is_not_part_of_it(settings):
    write_private(settings.token_path, f"\n  {TOKEN}\t\r\n")
    assert read_token(settings) == TOKEN


@pytest.mark.parametrize(
    "content",
    [b"", b" \n", b"short", b"a token of several words", "ein-schlüssel-für-alles".encode()],
    ids=["empty", "blank", "short", "words", "umlauts"],
)
def test_a_token_that_cannot_be_used_is_one_sentence_without_it(settings, content):
    settings.home.mkdir(mode=0o700)
    settings.token_path.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        read_token(settings)
    said = str(caught.value)
    assert str(settings.token_path) in said
    assert "Remove it to have one generated." in said
    assert not content.strip() or content.decode() not in said
    assert settings.token_path.read_bytes() == content


def _folder(path):
    path.mkdir()


def _latin(path):
    path.write_bytes(b"\xfcmlaut" * 5)


def _dangling(path):
    path.symlink_to(path.parent / "nowhere")


def _pipe(path):
    os.mkfifo(path, 0o600)


def _below_a_file(path):
    path.parent.rmdir()
    path.parent.write_text("a file")


def _locked(path):
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    path.write_text(TOKEN)
    path.chmod(0)


@POSIX
@pytest.mark.parametrize("spoil", [_folder, _latin, _dangling, _pipe, _below_a_file, _locked])
def test_a_file_that_cannot_be_used_is_one_sentence(home, spoil):
    path = home / "place" / "token"
    path.parent.mkdir()
    spoil(path)
    with pytest.raises(SettingsError) as caught:
        read_token(Settings(home=home / "state", token_file=path))
    assert str(caught.value).startswith(f"The token file {path} cannot be used: ")
    assert " Choose another with --token-file" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "[Errno" not in str(caught.value)


@POSIX
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o660])
def test_a_file_that_others_could_read_or_write_gets_a_new_token_and_that_is_said(
    settings, caplog, mode
):
    settings.home.mkdir()
    settings.token_path.write_text(TOKEN)
    settings.token_path.chmod(mode)
    with caplog.at_level(logging.WARNING):
        token = read_token(settings)
    assert token != TOKEN
    assert len(token) == 43
    assert settings.token_path.read_text() == f"{token}\n"
    assert _mode(settings.token_path) == 0o600
    assert str(settings.token_path) in caplog.text
    assert TOKEN not in caplog.text
    assert token not in caplog.text
    assert [path.name for path in settings.home.iterdir()] == ["token"]
    assert read_token(settings) == token


@POSIX
def test_a_link_to_a_file_that_others_could_read_stays_a_link(home):
    real, link = home / "real", home / "link"
    real.write_text(TOKEN)
    real.chmod(0o644)
    link.symlink_to(real)
    token = read_token(Settings(home=home / "state", token_file=link))
    assert link.is_symlink()
    assert real.read_text() == f"{token}\n"


@NEEDS_TWO_USERS
def test_a_token_that_another_user_shows_to_all_is_not_used(home):
    path = home / "token"
    path.write_text(TOKEN)
    path.chmod(0o644)
    os.chown(path, 65_534, -1)
    with pytest.raises(SettingsError, match="it belongs to another user"):
        read_token(Settings(home=home / "state", token_file=path))
    assert path.read_text() == TOKEN


DESCRIPTORS = pytest.mark.skipif(not Path("/dev/fd").exists(), reason="pipes of a shell")


@DESCRIPTORS
def test_a_token_may_come_out_of_a_pipe_of_the_shell(home):
    reader, writer = os.pipe()
    os.write(writer, f"{TOKEN}\n".encode())
    os.close(writer)
    try:
        settings = Settings(home=home / "state", token_file=Path(f"/dev/fd/{reader}"))
        assert read_token(settings) == TOKEN
    finally:
        os.close(reader)


@DESCRIPTORS
def test_an_unwritten_pipe_of_the_shell_is_not_waited_for_forever(home):
    reader, writer = os.pipe()
    settings = Settings(home=home / "state", token_file=Path(f"/dev/fd/{reader}"))
    try:
        with pytest.raises(SettingsError, match="nothing more came out of the pipe"):
            read_token(settings, patience=0.05)
    finally:
        os.close(reader)
        os.close(writer)


@POSIX
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_a_device_is_not_a_token_file(home, path):
    with pytest.raises(SettingsError, match="it is not a regular file"):
        read_token(Settings(home=home / "state", token_file=Path(path)))


def test_a_file_of_gigabytes_is_not_read(home):
    path = home / "token"
    with path.open("wb") as file:
        file.truncate(2**32)
    path.chmod(0o600)
    with pytest.raises(SettingsError, match="it is larger than"):
        read_token(Settings(home=home / "state", token_file=path))


def test_a_token_that_others_may_have_is_replaced_for_good(settings):
    old = read_token(settings)
    new = renew_token(settings)
    assert new != old
    assert read_token(settings) == new
    assert [path.name for path in settings.home.iterdir()] == ["token"]


def test_a_token_that_is_not_in_a_file_cannot_be_replaced(home):
    with pytest.raises(SettingsError, match="MCP_NOTEBOOK_TOKEN was not generated by mcp-notebook"):
        renew_token(Settings(home=home, token=TOKEN))


def test_a_token_in_the_environment_wins_over_the_file_and_makes_none(home):
    settings = Settings.from_environment(
        {"MCP_NOTEBOOK_TOKEN": TOKEN, "MCP_NOTEBOOK_HOME": str(home / "state")}
    )
    assert read_token(settings) == TOKEN
    assert not settings.token_path.exists()


@pytest.mark.parametrize("token", ["short", f"{TOKEN} {TOKEN}", f"{TOKEN}\n", f"{TOKEN}ü"])
def test_a_wrong_token_in_the_environment_is_named_but_not_shown(home, token):
    with pytest.raises(SettingsError) as caught:
        read_token(Settings(home=home, token=token))
    assert "MCP_NOTEBOOK_TOKEN" in str(caught.value)
    assert token not in str(caught.value)


@pytest.mark.parametrize("by_file", [True, False])
def test_a_token_that_cannot_be_used_ends_the_bridge_with_one_sentence(home, by_file):
    write_private(home / "token", "short")
    env = {} if by_file else {"MCP_NOTEBOOK_TOKEN": "short"}
    with bridge(
        home, "serve", "--port", "0", "--token-file", str(home / "token"), env=env
    ) as running:
        assert running.wait() == 1
        assert len(running.said.splitlines()) == 1
        assert "short" not in running.said
