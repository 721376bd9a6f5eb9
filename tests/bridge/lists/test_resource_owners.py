from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.lists import resource_owners
from mcp_notebook.bridge.lists.resource_owners import ResourceOwners
from mcp_notebook.content import ResourceLink, Result, Text

ANN, BOB = (
    Caller(name=name, permissions=Permissions(tools=("top",)), identity=f"token:{name}")
    for name in ("ann", "bob")
)


def linking(*uris):
    return Result([Text("a part"), *(ResourceLink(uri, "the whole") for uri in uris)])


def test_a_caller_sees_what_its_own_results_link_to_and_the_owner_sees_all():
    owners = ResourceOwners()
    owners.note_result(ANN, linking("notebook://k/1/a"))
    owners.note_result(OWNER, linking("notebook://k/2/a"))
    for uri, who in (("notebook://k/1/a", {"ann", "owner"}), ("notebook://k/2/a", {"owner"})):
        assert {each.name for each in (ANN, BOB, OWNER) if owners.may_see(each, uri)} == who


def test_a_token_of_the_same_name_sees_nothing_of_the_one_before():
    owners = ResourceOwners()
    owners.note_result(ANN, linking("notebook://k/1/a"))
    new = Caller(name="ann", permissions=ANN.permissions, identity="token:new")
    assert not owners.may_see(new, "notebook://k/1/a")


def test_only_the_resources_of_kernels_are_remembered():
    owners = ResourceOwners()
    owners.note_result(ANN, linking("https://example.com/a"))
    assert not owners.may_see(ANN, "https://example.com/a")


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(resource_owners, "MAX_RESOURCES", 3)
    monkeypatch.setattr(resource_owners, "MAX_CALLERS", 2)
    owners = ResourceOwners()
    uris = [f"notebook://k/{number}/a" for number in range(5)]
    owners.note_result(ANN, linking(*uris))
    assert [owners.may_see(ANN, uri) for uri in uris] == [False, False, True, True, True]
    for name in ("b", "c"):
        caller = Caller(name=name, permissions=ANN.permissions)
        owners.note_result(caller, linking("notebook://k/1/a"))
    assert not owners.may_see(ANN, uris[4])
