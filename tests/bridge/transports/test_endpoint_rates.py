"""What clients make of being refused for too many requests; the kernel is a stand-in."""

import httpx2
import pytest
from bridges import INITIALIZE, TOKEN
from endpoints import OWNERS, served
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from mcp_notebook.bridge.access.caller import EVERYTHING
from mcp_notebook.bridge.access.token_check import NamedTokens
from mcp_notebook.bridge.access.token_store import TokenStore

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_client_tells_its_user_when_to_try_again(home, era):
    async with (
        served(home, max_caller_calls_per_minute=5) as here,
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http,
        Client(streamable_http_client(here.url, http_client=http), mode=era) as client,
    ):
        refusal = None
        while refusal is None:
            try:
                await client.list_tools()
            except MCPError as error:
                refusal = str(error)
    assert "one caller may make 10 per minute. Try again in" in refusal


async def test_each_token_has_a_share_of_its_own(home):
    store = TokenStore(home / "tokens.json")
    tokens = [TOKEN, store.add("guest", EVERYTHING), store.add("other", EVERYTHING)]
    async with served(
        home,
        authenticators=(*OWNERS, NamedTokens(store)),
        max_caller_calls_per_minute=1,
    ) as here:
        statuses = [
            [(await here.ask(INITIALIZE, Authorization=f"Bearer {token}")).status for _ in range(3)]
            for token in tokens
        ]
    assert statuses == [[200, 200, 429]] * 3


async def test_every_request_counts_whatever_it_asks_for(home):
    async with served(home, max_caller_calls_per_minute=2) as here:
        assert (await here.ask(method="DELETE")).status != 429
        assert (await here.ask(method="DELETE")).status != 429
        assert (await here.ask(method="GET")).status != 429
        assert (await here.send(b"{")).status == 400
        assert (await here.ask(INITIALIZE)).status == 429
        assert (await here.ask(INITIALIZE, Authorization="Bearer wrong")).status == 401
