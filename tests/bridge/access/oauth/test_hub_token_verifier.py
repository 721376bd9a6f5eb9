"""Tokens of a JupyterHub; the hub is a stand-in that answers as JupyterHub 6.1.1 does."""

import pytest
from oauth_issuer import serve_in_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse
from starlette.routing import Route

from mcp_notebook.bridge.access.oauth.hub_token_verifier import HubTokens
from mcp_notebook.errors import IssuerUnreachable

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("shared_certificates")]

SCOPES = ["custom:mcp-notebook:read", "read:users:name!user=alice"]
USER = {"kind": "user", "name": "alice", "admin": False, "groups": [], "scopes": SCOPES}


async def _tell_user(request):
    match request.headers["authorization"]:
        case "Bearer alice":
            return JSONResponse(USER | {"token_id": "a2", "session_id": None})
        case "Bearer service":
            return JSONResponse(USER | {"kind": "service", "name": "culler"})
        case "Bearer broken":
            return PlainTextResponse("hello")
        case "Bearer redirected":
            return RedirectResponse("http://127.0.0.1:9/hub/api/user")
        case _:
            return JSONResponse({"status": 403, "message": "Missing or invalid credentials."}, 403)


@pytest.fixture(scope="module")
def api():
    def make(url):
        return f"{url}hub/api", Starlette(routes=[Route("/hub/api/user", _tell_user)])

    with serve_in_thread(make) as api:
        yield api


async def test_a_users_token_tells_the_name_and_the_scopes(api):
    access = await HubTokens(f"{api}/").verify_token("alice")
    assert (access.subject, access.scopes) == ("alice", SCOPES)


@pytest.mark.parametrize("token", ["wrong", "service", "alice\t", "", "älice", "alice\r\nHost: x"])
async def test_other_tokens_are_none(api, token):
    assert await HubTokens(api).verify_token(token) is None


@pytest.mark.parametrize("token", ["broken", "redirected"])
async def test_a_server_other_than_the_hub_is_not_believed(api, token):
    with pytest.raises(IssuerUnreachable, match="hub/api"):
        await HubTokens(api).verify_token(token)


async def test_a_hub_that_is_not_there_is_said_to_be_unreachable():
    with pytest.raises(IssuerUnreachable, match=r"127\.0\.0\.1:9"):
        await HubTokens("http://127.0.0.1:9/hub/api").verify_token("alice")
