import hmac

import pytest

from mcp_notebook.bridge.access.authenticator import Limited, OwnToken
from mcp_notebook.bridge.access.caller import OWNER, Permissions

pytestmark = pytest.mark.anyio
TOKEN = "0123456789abcdef-token"


async def test_the_own_token_is_the_owners():
    assert await OwnToken(TOKEN).authenticate(TOKEN) is OWNER


@pytest.mark.parametrize("token", ["", TOKEN[:-1], f"{TOKEN}0", TOKEN.upper(), "ü", "\ud800"])
async def test_any_other_is_nobodys(token):
    assert await OwnToken(TOKEN).authenticate(token) is None


async def test_the_token_is_compared_in_constant_time(monkeypatch):
    compared = []

    def compare(presented, expected):
        compared.append(presented)
        return presented == expected

    monkeypatch.setattr(hmac, "compare_digest", compare)
    for token in ("a", f"{TOKEN}0", ""):
        assert await OwnToken(TOKEN).authenticate(token) is None
    assert len(compared) == 3


async def test_the_owner_never_ends():
    assert not OwnToken(TOKEN).has_ended(OWNER)


async def test_limits_apply_as_they_are_at_each_request():
    limits = Permissions(read_only=True)
    limited = Limited(OwnToken(TOKEN), lambda: limits)
    caller = await limited.authenticate(TOKEN)
    assert (caller.name, caller.permissions) == ("owner", limits)
    limits = Permissions()
    assert await limited.authenticate(TOKEN) == OWNER
    assert await limited.authenticate("wrong") is None
    assert limited.challenge == "Bearer"
    assert not limited.has_ended(caller)
