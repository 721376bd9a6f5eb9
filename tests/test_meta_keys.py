import pytest

from mcp_notebook.meta_keys import MAX_RESULT_SIZE, PREFIX, TAGS, describe_key_problem


@pytest.mark.parametrize(
    "key", ["com.example/team", "com.example/", "a.b/c.d_e-f", MAX_RESULT_SIZE]
)
def test_keys_that_authors_can_use(key):
    assert describe_key_problem(key) is None


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("team", "reversed domain"),
        (5, "reversed domain"),
        ("com.mcp/x", "MCP reserves"),
        ("io.modelcontextprotocol.x/y", "MCP reserves"),
        (TAGS, "reserved for mcp-notebook"),
        (PREFIX.upper(), "reserved for mcp-notebook"),
    ],
)
def test_keys_that_they_cannot(key, problem):
    assert problem in describe_key_problem(key)
