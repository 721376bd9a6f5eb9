"""Who may call what without a further question, and for how long."""

import gc

from mcp_notebook.bridge.consent import grants as consent_grants
from mcp_notebook.bridge.consent.grants import MAX_GRANTS, ConsentGrants


class Connection:
    """What lasts as long as a client."""


def test_what_is_allowed_on_a_connection_ends_with_it():
    grants, here, there = ConsentGrants(), Connection(), Connection()
    grants.add("owner", "drop", connection=here)
    assert grants.has("owner", "drop", connection=here)
    assert not grants.has("owner", "other", connection=here)
    assert not grants.has("reader", "drop", connection=here)
    assert not grants.has("owner", "drop", connection=there)
    assert not grants.has("owner", "drop", client="")
    del here
    gc.collect()
    assert not grants._by_connection


def test_without_a_connection_it_is_for_one_caller_with_one_program(monkeypatch):
    grants = ConsentGrants()
    grants.add("owner", "drop", client="Claude 2")
    assert grants.has("owner", "drop", client="Claude 2")
    assert not grants.has("owner", "drop", client="Claude 3")
    assert not grants.has("reader", "drop", client="Claude 2")
    monkeypatch.setattr(consent_grants, "GRANT_SECONDS", -1)
    grants.add("owner", "late", client="Claude 2")
    assert not grants.has("owner", "late", client="Claude 2")


def test_only_so_many_are_kept():
    grants = ConsentGrants()
    for number in range(MAX_GRANTS + 1):
        grants.add("owner", str(number))
    assert not grants.has("owner", "0")
    assert grants.has("owner", "1")
