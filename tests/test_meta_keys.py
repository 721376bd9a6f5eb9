import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook import meta_keys
from mcp_notebook.meta_keys import PREFIX, TAGS, describe_key_problem


@pytest.mark.parametrize(
    "key",
    [
        *("team", "openai/outputTemplate", "anthropic/requiresUserInteraction", "com.example/ui"),
        *("com.example/team", "com.example/", "a.b/c.d_e-f", "com.example.mcp/x", "mcp/x"),
        meta_keys.MAX_RESULT_SIZE,
    ],
)
def test_keys_that_authors_can_use(key):
    assert describe_key_problem(key) is None


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        *((key, "MCP allows only a name") for key in (5, None, "a b", "-team", "team\n", "é")),
        *((key, "MCP allows only a name") for key in ("com..example/team", "com.-example/team")),
        *((key, "MCP allows only a name") for key in ("com.1example/x", "a.b/-x", "a.b/c/d", "/x")),
        ("com.mcp/x", "MCP reserves"),
        ("com.MCP.tools/x", "MCP reserves"),
        ("io.modelcontextprotocol/x", "MCP reserves"),
        ("io.modelcontextprotocol.x/y", "MCP reserves"),
        ("mcp.dev/x", "MCP reserves"),
        ("com.example.mcp.tools/x", "MCP reserves"),
        ("traceparent", "MCP reserves 'traceparent'"),
        ("progressToken", "MCP reserves 'progressToken'"),
        *((key, "use the tool's option `ui`") for key in ("ui", "ui/resourceUri")),
        (TAGS, "reserved for mcp-notebook"),
        (PREFIX.upper(), "reserved for mcp-notebook"),
    ],
)
def test_keys_that_they_cannot(key, problem):
    assert problem in describe_key_problem(key)


_LABELS = st.from_regex(r"[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?", fullmatch=True)
_NAMES = st.from_regex(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?", fullmatch=True)


@given(st.lists(_LABELS, max_size=3), _NAMES)
def test_a_key_of_the_specifications_form_is_refused_only_if_it_is_reserved(labels, name):
    key = f"{'.'.join(labels)}/{name}" if labels else name
    said = describe_key_problem(key)
    assert said is None or re.search(r"reserve[sd]", said)
