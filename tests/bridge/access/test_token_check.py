import hmac
import time

import pytest
from held_items import count_items

from mcp_notebook.bridge.access import token_check as bearer_tokens
from mcp_notebook.bridge.access import token_store
from mcp_notebook.bridge.access.caller import EVERYTHING, OWNER, Permissions
from mcp_notebook.bridge.access.gate import Refusal
from mcp_notebook.bridge.access.token_check import Limited, NamedTokens, OwnToken
from mcp_notebook.bridge.access.token_store import TokenStore

pytestmark = pytest.mark.anyio
TOKEN = "0123456789abcdef-token"


@pytest.fixture
def store(tmp_path):
    return TokenStore(tmp_path / "home" / "tokens.json")


@pytest.mark.smoke
async def test_a_token_is_known_as_soon_as_it_is_added_and_unknown_once_it_is_removed(store):
    tokens = NamedTokens(store)
    token = store.add("ci", Permissions(tools=("sales.*",)))
    caller = await tokens.authenticate(token)
    assert (caller.name, caller.permissions) == ("ci", Permissions(tools=("sales.*",)))
    assert not tokens.has_ended(caller)
    store.remove("ci")
    assert await tokens.authenticate(token) is None
    assert tokens.has_ended(caller)


async def test_a_caller_whose_token_is_removed_has_ended_before_anybody_makes_a_request(store):
    tokens = NamedTokens(store)
    caller = await tokens.authenticate(store.add("ci", EVERYTHING))
    store.remove("ci")
    assert tokens.has_ended(caller)


async def test_tokens_that_were_rotated_leave_nothing_in_memory(store):
    tokens = NamedTokens(store)
    await tokens.authenticate(store.add("ci", EVERYTHING))
    before = count_items(tokens)
    for _ in range(20):
        await tokens.authenticate(store.rotate("ci"))
    assert count_items(tokens) == before


async def test_a_rotated_token_is_another_caller_of_the_same_name(store):
    tokens = NamedTokens(store)
    old = store.add("ci", EVERYTHING)
    before = await tokens.authenticate(old)
    after = await tokens.authenticate(store.rotate("ci"))
    assert await tokens.authenticate(old) is None
    assert before.name == after.name
    assert before.owns != after.owns
    assert tokens.has_ended(before)
    assert not tokens.has_ended(after)


async def test_an_expired_token_is_refused_by_name(store, monkeypatch):
    tokens = NamedTokens(store)
    token = store.add("ci", EVERYTHING, seconds=60)
    caller = await tokens.authenticate(token)
    now = token_store.time.time() + 60
    monkeypatch.setattr(token_store.time, "time", lambda: now)
    assert await tokens.authenticate(token) == Refusal("the token 'ci' has expired")
    assert tokens.has_ended(caller)


async def test_a_token_that_another_user_may_know_is_refused(store):
    tokens, token = NamedTokens(store), store.add("ci", EVERYTHING)
    caller = await tokens.authenticate(token)
    store.void_all()
    reason = "the token 'ci' is void: another user may know it"
    assert await tokens.authenticate(token) == Refusal(reason)
    assert tokens.has_ended(caller)
    assert (await tokens.authenticate(store.rotate("ci"))).name == "ci"


async def test_the_owner_is_none_of_these_and_does_not_end(store):
    assert not NamedTokens(store).has_ended(OWNER)


@pytest.mark.parametrize("presented", ["", "x", "ü", "\ud800", "x" * 2**16])
async def test_a_wrong_token_has_no_caller(store, presented):
    store.add("ci", EVERYTHING)
    assert await NamedTokens(store).authenticate(presented) is None


async def test_neither_the_hash_nor_the_name_is_a_token(store):
    store.add("ci", EVERYTHING)
    (record,) = store.read()
    for presented in (record.sha256, record.name):
        assert await NamedTokens(store).authenticate(presented) is None


async def test_a_token_is_compared_with_all_of_them_in_constant_time(store, monkeypatch):
    first, *_ = (store.add(name, EVERYTHING) for name in ("a", "b", "c"))
    tokens = NamedTokens(store)
    compared = []

    def compare(known, presented):
        compared.append(presented)
        return known == presented

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert await tokens.authenticate("wrong") is None
    assert (await tokens.authenticate(first)).name == "a"
    assert len(compared) == 6


async def test_the_file_is_read_only_when_it_has_changed(store, monkeypatch):
    token = store.add("ci", EVERYTHING)
    tokens = NamedTokens(store)
    monkeypatch.setattr(TokenStore, "read", None)
    assert (await tokens.authenticate(token)).name == "ci"


async def test_the_use_of_a_token_is_noted_but_not_at_each_request(store, monkeypatch):
    token = store.add("ci", EVERYTHING)
    (ci,) = store.read()
    tokens, noted = NamedTokens(store), []
    monkeypatch.setattr(store, "note_use", noted.append)
    for presented in (token, "wrong", token, token):
        await tokens.authenticate(presented)
    assert noted == [ci]
    now = time.monotonic() + bearer_tokens.NOTE_INTERVAL
    monkeypatch.setattr(bearer_tokens.time, "monotonic", lambda: now)
    await tokens.authenticate(token)
    assert noted == [ci, ci]


async def test_a_file_that_cannot_be_used_voids_its_tokens_until_it_is_restored(store, caplog):
    token = store.add("ci", EVERYTHING)
    tokens = NamedTokens(store)
    good = store.path.read_text()
    store.path.write_text("{")
    for _ in range(3):
        assert await tokens.authenticate(token) is None
    (line,) = caplog.messages
    assert "cannot be used" in line
    assert "its tokens are refused" in line
    store.path.write_text(good)
    assert (await tokens.authenticate(token)).name == "ci"


async def test_what_is_exclusive_is_hidden_from_all_others(store):
    tokens = NamedTokens(store)
    ann = store.add("ann", EVERYTHING)
    assert (await tokens.authenticate(ann)).permissions == EVERYTHING
    bob = store.add("bob", Permissions(tools=("ops.*",)), exclusive=True)
    assert (await tokens.authenticate(ann)).permissions == Permissions(hidden=("ops.*",))
    assert (await tokens.authenticate(bob)).permissions == Permissions(tools=("ops.*",))
    assert tokens.limit_others() == Permissions(hidden=("ops.*",))
    store.remove("bob")
    assert tokens.limit_others() == EVERYTHING


async def test_what_was_exclusive_stays_hidden_while_the_file_cannot_be_used(store):
    store.add("bob", Permissions(tools=("ops.*",)), exclusive=True)
    tokens = NamedTokens(store)
    store.path.write_text("{")
    assert tokens.limit_others() == Permissions(hidden=("ops.*",))
    assert NamedTokens(store).limit_others() == Permissions(hidden=("*",))


# -- the own token ---------------------------------------------------------------------------------


async def test_the_own_token_is_the_owners():
    assert await OwnToken(TOKEN).authenticate(TOKEN) is OWNER


@pytest.mark.parametrize("token", ["", TOKEN[:-1], f"{TOKEN}0", TOKEN.upper(), "ü", "\ud800"])
async def test_any_other_token_has_no_caller(token):
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
