"""The metadata of the endpoint, as a client fetches it before it has a token."""

import pytest
from httpx2 import ASGITransport, AsyncClient
from starlette.responses import PlainTextResponse

from mcp_notebook.bridge.access.oauth.resource_metadata import format_challenge, publish_metadata

pytestmark = pytest.mark.anyio

RESOURCE = "https://notebooks.example.com/team/mcp"
ADDRESS = "https://notebooks.example.com/.well-known/oauth-protected-resource/team/mcp"


@pytest.fixture
def client():
    app = publish_metadata(
        PlainTextResponse("behind it", 401),
        resource=RESOURCE,
        issuer="https://login.example.com",
        scopes=["read", "all"],
    )
    return AsyncClient(transport=ASGITransport(app), base_url="https://notebooks.example.com")


async def test_it_names_the_endpoint_the_issuer_and_the_scopes(client):
    answer = await client.get(ADDRESS, headers={"Origin": "https://inspector.example"})
    assert answer.json() == {
        "resource": RESOURCE,
        "authorization_servers": ["https://login.example.com"],  # exactly as it writes itself
        "scopes_supported": ["read", "all"],
        "bearer_methods_supported": ["header"],
        "resource_name": "mcp-notebook",
    }
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("path", ["/", "/mcp", "/.well-known/oauth-protected-resource/"])
async def test_everything_else_goes_to_the_application(client, path):
    assert (await client.get(path)).text == "behind it"


async def test_the_challenge_says_where_it_is(client):
    challenge = format_challenge(RESOURCE, ["read", "all"])
    assert challenge == f'Bearer resource_metadata="{ADDRESS}", scope="read all"'
