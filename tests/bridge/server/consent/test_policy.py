"""Which tools ask a person before each call."""

import pytest

from mcp_notebook import meta_keys
from mcp_notebook.bridge.server.consent.policy import ConsentPolicy, check_decision
from mcp_notebook.errors import ConsentDenied
from mcp_notebook.settings.settings import Settings
from mcp_notebook.wire.messages import ToolInfo


def tool(annotations=None, **fields):
    return ToolInfo(name="drop", input_schema={}, annotations=annotations, **fields)


def test_only_what_its_author_marked_asks_by_default():
    policy = ConsentPolicy()
    assert policy.applies_to(tool(meta={meta_keys.CONFIRM: True}))
    assert policy.applies_to(tool({"readOnlyHint": True}, revision="a1"))
    assert not policy.applies_to(tool())
    assert not policy.applies_to(tool({"destructiveHint": True}))


@pytest.mark.parametrize(
    ("annotations", "asks"),
    [
        (None, True),
        ({}, True),
        ({"readOnlyHint": False}, True),
        ({"destructiveHint": True}, True),
        ({"destructiveHint": False}, False),
        ({"readOnlyHint": True}, False),
        ({"readOnlyHint": "yes"}, True),
    ],
)
def test_where_destructive_tools_ask_all_do_that_may_destroy_something(annotations, asks):
    policy = ConsentPolicy.from_settings(Settings(confirm_destructive=True))
    assert policy.applies_to(tool(annotations)) is asks


@pytest.mark.parametrize(("decision", "said"), [("deny", "did not allow"), ("close", "closed")])
def test_a_call_that_nobody_allowed_is_an_error_that_says_so(decision, said):
    with pytest.raises(ConsentDenied, match=said) as caught:
        check_decision("drop", decision)
    assert "'drop' runs only with a person's consent, so this call did not run" in str(caught.value)
    for allowed in ("once", "session"):
        check_decision("drop", allowed)


def test_the_end_of_the_time_is_told_with_its_length():
    assert "Nobody answered the question within 2.5 s." in str(
        ConsentPolicy(timeout=2.5).make_timeout("drop")
    )
