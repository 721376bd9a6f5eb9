"""A settings file is changed in one step, with a backup, or left alone."""

import json
import os
import stat
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.clients.client import Launch, Machine
from mcp_notebook.clients.installation import (
    apply_change,
    find_backup,
    is_installed,
    plan_installation,
    plan_removal,
)
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.errors import ClientError
from mcp_notebook.settings.settings import Settings

CURSOR = CLIENTS["cursor"]
LAUNCH = Launch(command="/env/bin/python", arguments=("stdio",), env={}, runs_notebooks=False)
WRITTEN = list(CLIENTS.values())
EACH = pytest.mark.parametrize("client", WRITTEN, ids=lambda client: client.name)
EXISTING = {
    "json": '{\n\t// mine\n\t"a": [1, 2,], "b": {}\n}\n',
    "toml": '# mine\na = "b" # c\n\n[mcp_servers.x]\ncommand = "y"\n# last',
}


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path / "home")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "settings"


def install(client, file, settings, launch=LAUNCH, **options):
    change = plan_installation(client, file, "notebook", launch, **options)
    return apply_change(change, settings)


def uninstall(client, file, settings):
    return apply_change(plan_removal(client, file, "notebook", settings), settings)


@EACH
@pytest.mark.smoke
def test_a_new_file_is_made_and_removed_again(client, tmp_path, settings):
    file = tmp_path / "new" / "folder" / "settings"
    assert install(client, file, settings) is None
    assert "/env/bin/python" in file.read_text()
    assert not plan_installation(client, file, "notebook", LAUNCH).is_needed
    uninstall(client, file, settings)
    assert not file.exists()


@EACH
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_an_existing_file_is_kept_and_restored_to_the_byte(client, end, mark, file, settings):
    before = (mark + EXISTING[client.syntax]).replace("\n", end).encode()
    file.write_bytes(before)
    backup = install(client, file, settings)
    assert backup.read_bytes() == before
    assert backup == find_backup(settings, file)
    assert file.read_bytes() != before
    uninstall(client, file, settings)
    assert file.read_bytes() == before


@pytest.mark.parametrize("client", [CURSOR, CLIENTS["codex"]], ids=lambda client: client.name)
def test_an_empty_file_is_empty_again(client, file, settings):
    file.touch()
    install(client, file, settings)
    assert file.read_bytes()
    uninstall(client, file, settings)
    assert file.read_bytes() == b""


def test_what_has_changed_since_stays_when_a_server_is_removed(file, settings):
    file.write_text('{"theme": "dark"}')
    install(CURSOR, file, settings)
    file.write_text(file.read_text().replace("dark", "light"))
    uninstall(CURSOR, file, settings)
    assert json.loads(file.read_text()) == {"theme": "light", "mcpServers": {}}


def test_a_server_with_other_settings_is_replaced_only_if_told_so(file, settings):
    install(CURSOR, file, settings)
    before = file.read_bytes()
    other = replace(LAUNCH, command="/other/python")
    with pytest.raises(ClientError, match=r"already has a server 'notebook' .*Add --replace"):
        install(CURSOR, file, settings, other)
    assert file.read_bytes() == before
    install(CURSOR, file, settings, other, replace=True)
    assert "/other/python" in file.read_text()
    uninstall(CURSOR, file, settings)
    assert json.loads(file.read_text() if file.exists() else "{}") == {}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("cursor", '{\n  "a": 1\n  "b": 2\n}', r"is not valid JSON: line 3: unexpected '\"b\": 2'"),
        ("cursor", '{"a": 1', "is not valid JSON: line 1: unexpected end"),
        ("cursor", '{"a": NaN}', "is not valid JSON: NaN is not valid"),
        ("cursor", "[" * 100_000, "is not valid JSON: it is nested too deeply"),
        ("cursor", "[]", "its top level is not an object"),
        ("cursor", '{"mcpServers": []}', "has a member 'mcpServers' that is not an object"),
        ("jupyter-ai", '{"mcp_servers": {}}', "'mcp_servers' that is not a list of named objects"),
        ("jupyter-ai", '{"mcp_servers": [{}]}', "is not a list of named objects"),
        ("codex", "a = \n", r"is not valid TOML: .*line 1"),
        ("codex", "mcp_servers = { x = { a = 1 } }\n", "has a layout that this command cannot"),
        ("cursor", b"\xff", "is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_changed_is_named_and_left_alone(name, text, problem, file, settings):
    before = text if isinstance(text, bytes) else text.encode()
    file.write_bytes(before)
    client = CLIENTS[name]
    with pytest.raises(ClientError, match=problem) as failure:
        install(client, file, settings)
    assert str(failure.value).startswith(f"{client.title}'s settings, {file}, were not changed: ")
    assert f"paste the output of `mcp-notebook install {name} --print`" in str(failure.value)
    assert file.read_bytes() == before


@given(content=st.binary())
def test_no_content_ends_in_anything_but_a_valid_file_or_a_message(content, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    for client in (CURSOR, CLIENTS["codex"]):
        (folder / "settings").write_bytes(content)
        try:
            install(client, folder / "settings", Settings(home=folder / "home"))
        except ClientError:
            assert (folder / "settings").read_bytes() == content


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of Unix")
def test_a_file_keeps_its_permissions_and_a_link_stays_one(tmp_path, file, settings):
    target = tmp_path / "dotfiles"
    target.write_text("{}")
    target.chmod(0o640)
    file.symlink_to(target)
    backup = install(CURSOR, file, settings)
    assert file.is_symlink()
    assert "mcpServers" in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of Unix")
@pytest.mark.parametrize("protected", ["file", "folder"])
def test_what_the_user_may_not_write_is_named_and_left_alone(protected):
    # Another user is to reach it, who may not enter the folder of this run.
    with tempfile.TemporaryDirectory(dir=os.environ["TESTS_DOWNLOADS"]) as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "home").mkdir()
        (folder / "home").chmod(0o777)
        file = folder / "cursor" / "mcp.json"
        file.parent.mkdir()
        file.write_text("{}")
        file.chmod(0o444 if protected == "file" else 0o666)
        file.parent.chmod(0o777 if protected == "file" else 0o555)
        done = subprocess.run(
            [sys.executable, "-c", TRY_TO_WRITE, str(file), str(folder / "home")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert file.read_text() == "{}"
        assert sorted(file.parent.iterdir()) == [file]
        file.parent.chmod(0o755)
    place = file if protected == "file" else file.parent
    assert f"were not changed: {place} cannot be written (Permission denied). Make" in done.stdout


TRY_TO_WRITE = """
import os, sys, tempfile
from pathlib import Path
from mcp_notebook.clients.client import Launch
from mcp_notebook.clients.installation import apply_change, plan_installation
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.errors import ClientError
from mcp_notebook.settings.settings import Settings
launch = Launch(command="python", arguments=(), env={}, runs_notebooks=False)
change = plan_installation(CLIENTS["cursor"], Path(sys.argv[1]), "notebook", launch)
settings = Settings(home=Path(sys.argv[2]) / "state")
if os.geteuid() == 0:
    os.setuid(65534)  # root may write anywhere
try:
    apply_change(change, settings)
except ClientError as error:
    print(error)
"""


def test_a_place_that_cannot_be_written_is_named(tmp_path, settings):
    (tmp_path / "taken").write_text("no folder")
    file = tmp_path / "taken" / "mcp.json"
    with pytest.raises(ClientError, match=r"cannot be (read|written).* install cursor --print`"):
        install(CURSOR, file, settings)


def test_a_file_that_changes_while_it_is_changed_is_left_alone(file, settings):
    change = plan_installation(CURSOR, file, "notebook", LAUNCH)
    file.write_text("{}")
    with pytest.raises(
        ClientError,
        match=r"changed .* in the meantime, so nothing was "
        r"written. Run",
    ):
        apply_change(change, settings)
    assert file.read_text() == "{}"


@EACH
def test_a_server_that_is_not_there_cannot_be_removed(client, file, settings):
    with pytest.raises(ClientError, match=r"has no server 'notebook' in .*nothing to remove"):
        uninstall(client, file, settings)
    file.write_text("" if client.syntax == "toml" else "{}")
    with pytest.raises(ClientError, match=r"has no server 'notebook' in .*nothing to remove"):
        uninstall(client, file, settings)


def test_a_client_is_found_by_its_folder_or_its_command(tmp_path):
    def machine(**env):
        return Machine(platform="linux", home=tmp_path, folder=tmp_path, env={"PATH": "", **env})

    assert not is_installed(CURSOR, machine())
    assert not is_installed(CLIENTS["claude-code"], machine())
    assert is_installed(CLIENTS["vscode-workspace"], machine())
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".claude").mkdir()
    assert is_installed(CURSOR, machine())
    assert is_installed(CLIENTS["claude-code"], machine())
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.touch(mode=0o755)
    assert is_installed(CLIENTS["codex"], machine(PATH=str(program.parent)))
    assert not is_installed(CLIENTS["gemini"], machine(PATH=str(Path(program.parent))))
