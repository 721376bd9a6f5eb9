import hmac
import logging
import os
import subprocess
import sys

import httpx2
import pytest
from bridges import TOKEN, ask, bridge, http_bridge
from live import kernel_env

from mcp_notebook.bridge.transports.access import Gate, is_loopback, read_token
from mcp_notebook.errors import SettingsError
from mcp_notebook.private_files import write_private
from mcp_notebook.settings import Settings

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="file modes")


# -- the token and its file ------------------------------------------------------------------------


@pytest.fixture
def settings(home):
    return Settings(home=home / "state")


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


def test_what_is_no_token_file_is_left_as_it_is(home):
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
    "from mcp_notebook.bridge.transports.access import read_token\n"
    "from mcp_notebook.settings import Settings\n"
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
    settings.home.mkdir(mode=0o700)
    settings.token_path.write_text(f"\n  {TOKEN}\t\r\n")
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
    assert str(caught.value).endswith(" Choose another with --token-file.")
    assert "\n" not in str(caught.value)


@POSIX
def test_a_file_that_others_could_read_is_made_private_and_that_is_said(settings, caplog):
    settings.home.mkdir()
    settings.token_path.write_text(TOKEN)
    settings.token_path.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        assert read_token(settings) == TOKEN
    assert _mode(settings.token_path) == 0o600
    assert str(settings.token_path) in caplog.text
    assert TOKEN not in caplog.text


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


# -- the gate --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(module_home):
    """A bridge; whatever the tests send, it must not say the token nor anything new."""
    with http_bridge(module_home) as running:
        yield running
        running.end()
        assert TOKEN not in running.said
        assert len(running.said.splitlines()) == 4, running.said


@pytest.mark.parametrize(
    "presented",
    [
        "",
        "Bearer",
        "Bearer ",
        TOKEN,
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}0",
        f"Bearer {TOKEN.upper()}",
        f"Bearer {TOKEN}, Bearer {TOKEN}",
        f"Bearer={TOKEN}",
        "Bearer " + "x" * 40_000,
        "Bearer schlüssel".encode(),
        f"Bearer {TOKEN}".encode("utf-16-le").replace(b"\0", b"\xff"),
    ],
    ids=lambda presented: ascii(presented)[:40],
)
def test_what_is_not_exactly_the_token_is_refused(served, presented):
    answer = ask(served.url, headers={"Authorization": presented})
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.body == b'{"error":"The bearer token is missing or wrong."}'


@pytest.mark.parametrize("presented", [f"bearer {TOKEN}", f"BEARER {TOKEN}", f"Bearer  {TOKEN} "])
def test_the_scheme_is_compared_without_case_as_http_says(served, presented):
    assert ask(served.url, headers={"Authorization": presented}).status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/mcp", "/", "/elsewhere"])
def test_no_method_and_no_path_gets_past_the_token(served, method, path):
    assert ask(served.url, method, path=path, headers={"Authorization": None}).status == 401


@pytest.mark.parametrize("token", [TOKEN, "wrong"])
def test_an_upgrade_to_a_websocket_is_an_ordinary_request(served, token):
    upgrade = {
        "Authorization": f"Bearer {token}",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    answer = ask(served.url, "GET", headers=upgrade)
    assert answer.status == (400 if token == TOKEN else 401)


def test_a_token_in_the_address_is_none(served):
    answer = ask(served.url, path=f"/mcp?token={TOKEN}", headers={"Authorization": None})
    assert answer.status == 401


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:1", "localhost:8791", "LOCALHOST", "[::1]", "[::1]:8791"],
)
def test_every_name_of_this_machine_is_a_host(served, host):
    assert ask(served.url, headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example:8791",
        "localhost@evil.example",
        "evil.example@localhost",
        "@localhost",
        "localhost/",
        "localhost?evil.example",
        "localhost#evil.example",
        "localhost\\evil.example",
        "localhost:port",
        "localhost:99999",
        "::1",
        "[::1",
        "[::2]",
        "löcalhost".encode("latin-1"),
        "127.1",
        "2130706433",
    ],
)
def test_a_host_that_is_not_this_machine_is_refused(served, host):
    """DNS rebinding: a page's own name leads to 127.0.0.1, and its browser still sends the name."""
    answer = ask(served.url, headers={"Host": host})
    assert answer.status == 403
    assert answer.body == b'{"error":"This Host or Origin may not use mcp-notebook."}'


@pytest.mark.parametrize("origin", ["http://localhost:8888", "https://127.0.0.1", "http://[::1]:1"])
def test_pages_of_this_machine_may_come_in(served, origin):
    assert ask(served.url, headers={"Origin": origin}).status == 200


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "localhost",
        "ftp://localhost",
        "file://",
        "chrome-extension://abcdef",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil.example@localhost",
        "http://localhost/page",
        "http://[",
        "http://localhost http://evil.example",
    ],
)
def test_pages_of_other_places_are_refused(served, origin):
    assert ask(served.url, headers={"Origin": origin}).status == 403


def test_ipv6_is_served(module_home):
    with bridge(module_home, "serve", "--port", "0", "--host", "::1") as running:
        if "cannot be listened on" in running.wait_said(r"Serving|listened")[0] + running.said:
            pytest.skip("no IPv6 here")
        token = (module_home / ".mcp-notebook" / "token").read_text().strip()
        authorization = {"Authorization": f"Bearer {token}"}
        assert running.url.startswith("http://[::1]:")
        assert ask(running.url, headers=authorization).status == 200
        assert ask(running.url, headers=authorization | {"Host": "evil.example"}).status == 403
        assert token not in running.said


# -- the gate of an address that others can reach, which tests must not open -----------------------


async def _behind(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _status(host, /, *doubled, **headers):
    transport = httpx2.ASGITransport(app=Gate(_behind, token=TOKEN, host=host))
    headers = {"Authorization": f"Bearer {TOKEN}"} | headers
    headers = [*headers.items(), *doubled]
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return (await client.post("/mcp", headers=headers)).status_code


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Origin": "http://hub.example:8791"}, 200),
        ({"Origin": "https://hub.example:8791"}, 200),
        ({"Origin": "http://hub.example"}, 403),
        ({"Origin": "http://localhost:8791"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "", "Host": ""}, 403),
        ({"Origin": "null", "Host": ""}, 403),
    ],
)
async def test_an_open_address_takes_every_host_but_pages_only_from_itself(headers, status):
    assert await _status("0.0.0.0", **({"Host": "hub.example:8791"} | headers)) == status


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("websocket", [{"type": "websocket.close", "code": 1008}]),
        ("lifespan", []),
        ("webtransport", []),
    ],
)
async def test_what_is_not_http_never_gets_behind_the_gate(kind, answer):
    sent = []

    async def behind(scope, receive, send):
        sent.append("behind")

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {TOKEN}".encode())]
    await Gate(behind, token=TOKEN, host="127.0.0.1")(
        {"type": kind, "headers": headers}, None, send
    )
    assert sent == answer


@pytest.mark.anyio
async def test_a_local_name_that_was_asked_for_is_a_host():
    assert await _status("127.0.0.2", Host="127.0.0.2:8791") == 200
    assert await _status("127.0.0.2", Host="127.0.0.3:8791") == 403


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize(
    ("name", "right", "wrong", "status"),
    [
        ("Host", "localhost:8791", "evil.example", 403),
        ("Host", "localhost:8791", "localhost:8791", 403),
        ("Origin", "http://localhost:8791", "http://evil.example", 403),
        ("Authorization", f"Bearer {TOKEN}", "Bearer wrong", 401),
        ("Authorization", f"Bearer {TOKEN}", f"Bearer {TOKEN}", 401),
    ],
)
async def test_a_header_that_comes_twice_lets_nobody_in(host, name, right, wrong, status):
    """Whatever stands before the bridge may have looked at the other one."""
    headers = {"Host": "localhost:8791", "Authorization": f"Bearer {TOKEN}"}
    assert await _status(host, **headers | {name: right}) == 200
    assert await _status(host, (name, wrong), **headers | {name: right}) == status
    assert await _status(host, (name, right), **headers | {name: wrong}) == status


@pytest.mark.anyio
async def test_the_token_is_compared_in_constant_time(monkeypatch):
    compared = []

    def compare(presented, expected):
        compared.append(presented)
        return presented == expected

    monkeypatch.setattr(hmac, "compare_digest", compare)
    for presented in ("Bearer a", f"Bearer {TOKEN}0", "Basic"):
        assert await _status("127.0.0.1", Authorization=presented) == 401
    assert len(compared) == 3


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.1", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_which_addresses_only_this_machine_reaches(host, local):
    assert is_loopback(host) is local
