"""``/healthz``, over HTTP."""

import pytest
from endpoints import served

pytestmark = pytest.mark.anyio


async def get(here, path, method="GET", **headers):
    """Ask for another path of the endpoint, without a body."""
    return await here.send(b"", method, headers, path=path)


@pytest.mark.parametrize(
    "headers",
    [{"Authorization": None}, {"Authorization": "Bearer wrong"}, {"Host": "elsewhere.example"}],
    ids=["no token", "wrong token", "another host"],
)
async def test_everybody_may_ask_whether_the_bridge_is_up_and_learns_nothing_else(home, headers):
    async with served(home) as here:
        answer = await get(here, "/healthz", **headers)
        assert (answer.status, answer.body) == (200, b"ok")
        kept = {name.lower() for name in answer.headers}
        assert kept == {"date", "content-type", "content-length", "cache-control"}
        head = await get(here, "/healthz", "HEAD", **headers)
        assert (head.status, head.body) == (200, b"")


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/healthz", "POST"),
        ("/healthz", "OPTIONS"),
        ("/healthz/", "GET"),
        ("/healthz/mcp", "GET"),
        ("//healthz", "GET"),
    ],
)
async def test_everything_else_needs_the_token(home, path, method):
    async with served(home) as here:
        assert (await get(here, path, method, Authorization=None)).status == 401
        assert (await get(here, path, method, Host="elsewhere.example")).status == 403
