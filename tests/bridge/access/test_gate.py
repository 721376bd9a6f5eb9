import re
from collections.abc import Collection

import anyio
import httpx2
import pytest
from bridges import TOKEN, ask, bridge, http_bridge
from live import TIMEOUT

from mcp_notebook.bridge.access.caller import SCOPE_KEY, Caller
from mcp_notebook.bridge.access.gate import Gate, Refusal, is_loopback
from mcp_notebook.bridge.access.token_check import OwnToken

OWN = [OwnToken(TOKEN)]


@pytest.fixture(scope="module")
def served(module_home):
    """A bridge; whatever the tests send, it must say neither the token nor more than refusals."""
    with http_bridge(module_home) as running:
        yield running
        running.end()
        assert TOKEN not in running.said
        refusals = running.said.splitlines()[4:]
        assert all(re.fullmatch(REFUSAL, line) for line in refusals), running.said


REFUSAL = (
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d refused a request from 127\.0\.0\.1 port \d+: "
    r"(the bearer token is (wrong|missing)|its Host or Origin is not allowed)"
    r"( \(more in this minute are only counted\))?|refused \d+ more requests before that"
)


def test_each_refused_request_is_one_line_without_what_it_presented(home):
    presented = "Bearer guess-of-somebody"
    with http_bridge(home) as running:
        for headers, reason in [
            ({"Authorization": presented}, "the bearer token is wrong"),
            ({"Authorization": None}, "the bearer token is missing"),
            ({"Host": "evil.example"}, "its Host or Origin is not allowed"),
            ({"X-Forwarded-For": "10.0.0.1", "Authorization": None}, "token is missing"),
        ]:
            ask(running.url, headers=headers)
            running.wait_said(rf"refused .*{reason}\n")
        running.end()
    lines = running.said.splitlines()[4:]
    assert len(lines) == 4
    assert all(re.fullmatch(REFUSAL, line) for line in lines), lines
    assert "guess" not in running.said
    assert "evil" not in running.said


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
        pytest.param("localhost:" + "0" * 60_000, id="long"),
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


async def _status(host, allowed=None, /, *doubled, **headers):
    gate = Gate(_behind, authenticators=OWN, host=host, **(allowed or {}))
    transport = httpx2.ASGITransport(app=gate)
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
    await Gate(behind, authenticators=OWN, host="127.0.0.1")(
        {"type": kind, "headers": headers}, None, send
    )
    assert sent == answer


@pytest.mark.anyio
async def test_a_local_name_that_was_asked_for_is_a_host():
    assert await _status("127.0.0.2", Host="127.0.0.2:8791") == 200
    assert await _status("127.0.0.2", Host="127.0.0.3:8791") == 403


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "tools.example"}, 200),
        ({"Host": "TOOLS.example:443", "Origin": "https://tools.example"}, 200),
        ({"Host": "tools.example", "Origin": "https://app.example"}, 200),
        ({"Host": "localhost", "Origin": "https://App.example"}, 200),
        ({"Host": "localhost", "Origin": "https://evil.app.example"}, 403),
        ({"Host": "localhost", "Origin": "ftp://app.example"}, 403),
        ({"Host": "evil.tools.example"}, 403),
    ],
)
async def test_the_names_of_a_proxy_and_of_pages_are_a_setting(headers, status):
    allowed = {"allowed_hosts": ["Tools.example", "app.example"]}
    assert await _status("127.0.0.1", allowed, **headers) == status


@pytest.mark.anyio
@pytest.mark.parametrize(("origin", "status"), [("https://app.example", 200), ("https://a.b", 403)])
async def test_pages_of_allowed_hosts_may_use_an_endpoint_with_any_name(origin, status):
    allowed = {"allowed_hosts": ["app.example"]}
    assert await _status("0.0.0.0", allowed, Host="hub.example", Origin=origin) == status


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
    assert await _status(host, None, (name, wrong), **headers | {name: right}) == status
    assert await _status(host, None, (name, right), **headers | {name: wrong}) == status


class _Guests:
    """Knows guests by tokens that are their names."""

    challenge = 'Bearer realm="guests"'
    has_left: Collection[str] = ()

    def has_ended(self, caller):
        return caller.name in self.has_left

    async def authenticate(self, token):
        if token == "gone":
            return Refusal("the guest has left")
        return Caller(name=token) if token in ("ann", "bob") else None


@pytest.mark.anyio
async def test_each_authenticator_is_asked_and_the_first_that_knows_the_token_decides(caplog):
    callers = []

    async def behind(scope, receive, send):
        callers.append(scope[SCOPE_KEY].name)
        await _behind(scope, receive, send)

    gate = Gate(behind, authenticators=[*OWN, _Guests()], host="127.0.0.1")
    transport = httpx2.ASGITransport(app=gate)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:

        async def present(token):
            return await client.post("/mcp", headers={"Authorization": f"Bearer {token}"})

        for token in ("ann", TOKEN, "bob"):
            assert (await present(token)).status_code == 200
        for token in ("gone", "eve"):
            answer = await present(token)
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"] == 'Bearer realm="guests"'
            assert answer.json() == {"error": "The bearer token is missing or wrong."}
    assert callers == ["ann", "owner", "bob"]
    left, wrong = caplog.messages
    assert left.endswith(": the guest has left")
    assert wrong.endswith(": the bearer token is wrong")


@pytest.mark.anyio
async def test_the_open_requests_of_a_caller_end_when_its_right_does():
    guests, began, ended, closed, answers = _Guests(), [], [], [], []
    all_began, both_answered, left = anyio.Event(), anyio.Event(), anyio.Event()

    async def behind(scope, receive, send):
        name = scope[SCOPE_KEY].name
        began.append(name)
        if len(began) == 3:
            all_began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(name)

    async def close(caller):
        closed.append(caller.name)
        left.set()

    guarded = Gate(behind, authenticators=[*OWN, guests], host="127.0.0.1", watch_interval=0)

    async def answer(message):
        if message["type"] == "http.response.start":
            answers.append(message["status"])
            if len(answers) == 2:
                both_answered.set()

    async def request(token):
        headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())]
        await guarded({"type": "http", "method": "POST", "headers": headers}, None, answer)

    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(guarded.watch, close)
            for token in ("ann", "bob", "ann"):
                tasks.start_soon(request, token)
            await all_began.wait()
            guests.has_left = ("ann",)
            await left.wait()
            await both_answered.wait()
            assert ended == ["ann", "ann"]
            tasks.cancel_scope.cancel()
    assert set(closed) == {"ann"}
    assert answers == [401, 401]


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
