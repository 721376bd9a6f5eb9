import json
import os
import stat
import subprocess
import sys
import time

import pytest

from mcp_notebook.bridge.access.caller import EVERYTHING, Permissions
from mcp_notebook.bridge.access.token_store import MAX_TOKENS, TokenStore, hash_token
from mcp_notebook.errors import TokenError

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")


@pytest.fixture
def store(tmp_path):
    return TokenStore(tmp_path / "home" / "tokens.json")


def test_without_a_file_there_are_no_tokens(store):
    assert store.read() == ()
    assert not store.path.parent.exists()


def test_what_was_added_is_read_without_the_token_itself(store):
    rights = Permissions(tools=("sales.*", "rain"), tags=frozenset({"b", "a"}), read_only=True)
    before = time.time()
    token = store.add("ci", rights, seconds=60, exclusive=True)
    store.add("Ann", EVERYTHING)
    ann, ci = store.read()
    assert (ci.name, ci.permissions, ci.exclusive) == ("ci", rights, True)
    assert before <= ci.created <= time.time()
    assert ci.expires == ci.created + 60
    assert ci.sha256 == hash_token(token)
    assert (ann.name, ann.permissions, ann.expires) == ("Ann", EVERYTHING, None)
    assert token not in store.path.read_text()


def test_each_token_is_256_random_bits(store):
    tokens = {store.add(f"t{number}", EVERYTHING) for number in range(10)}
    assert len(tokens) == 10
    assert all(len(token) == 43 for token in tokens)


@POSIX
def test_nobody_else_can_read_the_file_or_its_folder(store):
    os.umask(os.umask(0))  # whatever it is
    store.add("ci", EVERYTHING)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", ".x", "ä", "x" * 65, "a\n", "a\x1b[2J"])
def test_a_name_that_could_confuse_a_log_is_none(store, name):
    with pytest.raises(TokenError, match="is not a name for a token"):
        store.add(name, EVERYTHING)


@pytest.mark.parametrize("name", ["owner", "stdio"])
def test_nobody_can_be_called_as_the_owner_is_in_the_log(store, name):
    with pytest.raises(TokenError, match="taken by mcp-notebook itself"):
        store.add(name, EVERYTHING)


def test_a_name_is_given_once(store):
    store.add("ci", EVERYTHING)
    with pytest.raises(TokenError, match=r"There is a token 'ci' already.*token rotate ci"):
        store.add("ci", EVERYTHING)


def test_there_are_only_so_many(store):
    record = {"created": 0, "sha256": "0" * 64}
    tokens = [record | {"name": f"t{number}"} for number in range(MAX_TOKENS)]
    _write(store, json.dumps({"version": 1, "tokens": tokens}))
    with pytest.raises(TokenError, match="1,000 tokens already"):
        store.add("ci", EVERYTHING)


def test_a_removed_token_is_gone_and_others_stay(store):
    store.add("a", EVERYTHING)
    store.add("b", EVERYTHING)
    store.remove("a")
    assert [record.name for record in store.read()] == ["b"]


@pytest.mark.parametrize("change", ["remove", "rotate"])
def test_an_unknown_name_is_told_with_the_one_that_was_meant(store, change):
    with pytest.raises(TokenError, match=r"no token 'ci'; tokens: none."):
        getattr(store, change)("ci")
    store.add("sales-ci", EVERYTHING)
    with pytest.raises(TokenError, match=r"no token 'sales_ci'; did you mean 'sales-ci'?"):
        getattr(store, change)("sales_ci")


def test_a_rotated_token_has_the_same_rights_for_as_long(store):
    rights = Permissions(tools=("sales.*",))
    old = store.add("ci", rights, seconds=60, exclusive=True)
    (before,) = store.read()
    new = store.rotate("ci")
    (after,) = store.read()
    assert old != new
    assert after.sha256 == hash_token(new)
    assert (after.permissions, after.exclusive) == (rights, True)
    assert after.expires - after.created == pytest.approx(60)
    assert after.created >= before.created
    store.rotate("ci", seconds=5)
    (after,) = store.read()
    assert after.expires - after.created == pytest.approx(5)


def test_tokens_that_others_may_know_are_void_until_they_are_rotated(store):
    assert store.void_all() == []
    assert not store.path.exists()
    for name in ("a", "b"):
        store.add(name, EVERYTHING)
    assert store.void_all() == ["a", "b"]
    assert store.void_all() == []
    store.rotate("a")
    assert [record.is_void for record in store.read()] == [False, True]


def test_when_a_token_was_last_used_is_known_until_it_is_replaced(store):
    store.add("ci", EVERYTHING)
    (ci,) = store.read()
    assert store.find_last_use(ci) is None
    before = time.time() - 2  # disks have a clock of their own
    store.note_use(ci)
    store.note_use(ci)
    assert before <= store.find_last_use(ci) <= time.time() + 2
    files = [path for path in store.path.parent.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    store.rotate("ci")
    assert store.find_last_use(ci) is None
    (ci,) = store.read()
    store.note_use(ci)
    store.remove("ci")
    assert store.find_last_use(ci) is None


def test_a_use_that_cannot_be_noted_is_not_an_error(store):
    store.add("ci", EVERYTHING)
    (ci,) = store.read()
    (store.path.parent / "token-uses").write_text("")
    store.note_use(ci)
    assert store.find_last_use(ci) is None


@pytest.mark.slow
def test_two_commands_at_once_lose_nothing(store):
    script = (
        "import sys; from pathlib import Path\n"
        "from mcp_notebook.bridge.access.caller import EVERYTHING\n"
        "from mcp_notebook.bridge.access.token_store import TokenStore\n"
        "store = TokenStore(Path(sys.argv[1])); print(flush=True); sys.stdin.read()\n"
        "for number in range(20): store.add(f'{sys.argv[2]}{number}', EVERYTHING)"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(store.path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for name in "ab"
    ]
    for writer in writers:
        writer.stdout.readline()  # both are there
    for writer in writers:
        writer.stdin.close()
    for writer in writers:
        assert writer.wait(60) == 0
        writer.stdout.close()
    assert len(store.read()) == 40


# -- a file that cannot be used, or not be trusted -------------------------------------------------

RECORD = {"name": "ci", "sha256": "0" * 64, "created": 0}


def _write(store, text):
    store.path.parent.mkdir(mode=0o700, exist_ok=True)
    store.path.write_text(text)
    store.path.chmod(0o600)


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        ([RECORD | {"sha256": "x"}], r"at `\$.tokens\[0\].sha256`"),
        ([RECORD | {"name": "a b"}], r"at `\$.tokens\[0\].name`"),
        ([RECORD | {"expires": "soon"}], r"at `\$.tokens\[0\].expires`"),
        ([RECORD | {"created": 1e300}], r"at `\$.tokens\[0\].created`"),
        ([RECORD | {"only_on_mondays": True}], "unknown field `only_on_mondays`"),
        ([RECORD | {"exclusive": True}], "an exclusive token needs tools"),
        ([RECORD, RECORD], "two tokens have the same name"),
    ],
    ids=["hash", "name", "time", "end-of-time", "unknown-limit", "exclusive", "twice"],
)
def test_a_record_that_is_wrong_or_of_a_newer_version_voids_the_file(store, tokens, reason):
    _write(store, json.dumps({"version": 1, "tokens": tokens}))
    with pytest.raises(TokenError, match=f"{reason}.*delete it to void") as error:
        store.read()
    assert str(store.path) in str(error.value)


def test_what_a_terminal_could_not_decode_is_refused_and_changes_nothing(store):
    store.add("ci", EVERYTHING)
    with pytest.raises(TokenError, match="is not Unicode, so nothing was changed"):
        store.add("odd", Permissions(tools=("r\udcfc*",)))
    assert [record.name for record in store.read()] == ["ci"]


def test_a_file_that_cannot_be_written_is_one_sentence_that_says_what_to_do(tmp_path):
    (tmp_path / "file").touch()
    store = TokenStore(tmp_path / "file" / "tokens.json")
    with pytest.raises(TokenError) as error:
        store.add("ci", EVERYTHING)
    assert str(error.value).startswith(f"The file of tokens {store.path} cannot be ")
    assert "set MCP_NOTEBOOK_HOME to another folder" in str(error.value)
    assert "[Errno" not in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "\0", '{"version": 2, "tokens": []}', "x" * 2**23])
def test_a_damaged_file_is_named_and_left_as_it_is(store, text):
    _write(store, text)
    for use in (store.read, lambda: store.add("ci", EVERYTHING), lambda: store.remove("ci")):
        with pytest.raises(TokenError, match=r"cannot be used: .*Restore it from a backup"):
            use()
    assert store.path.read_text() == text


@POSIX
@pytest.mark.parametrize("mode", [0o644, 0o620, 0o602])
def test_a_file_that_others_have_a_part_in_is_not_read(store, mode):
    store.add("ci", EVERYTHING)
    store.path.chmod(mode)
    with pytest.raises(TokenError, match=r"Other users have access to .* run `chmod 600 "):
        store.read()
    store.path.chmod(0o600)
    assert len(store.read()) == 1


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can")
def test_a_file_of_another_user_is_not_read(store):
    store.add("ci", EVERYTHING)
    os.chown(store.path, 65534, 65534)
    with pytest.raises(TokenError, match="it belongs to another user"):
        store.read()


@POSIX
def test_neither_a_link_nor_a_pipe_nor_a_folder_is_read(store):
    store.add("ci", EVERYTHING)
    store.path.rename(store.path.with_name("elsewhere"))
    for make in (lambda: store.path.symlink_to("elsewhere"), lambda: os.mkfifo(store.path, 0o600)):
        make()
        with pytest.raises(TokenError):
            store.read()
        store.path.unlink()
    store.path.mkdir(mode=0o700)
    with pytest.raises(TokenError, match="cannot be used"):
        store.read()
