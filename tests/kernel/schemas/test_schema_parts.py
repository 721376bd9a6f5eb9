"""Whether the words for a schema allow a value, as far as they go."""

import pytest

from mcp_notebook.kernel.schemas.schema_parts import find_part, is_allowed

ROOT = {
    "properties": {
        "tree": {"$ref": "#/$defs/Tree"},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"const": 1}},
    },
    "$defs": {"Tree": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}},
}


@pytest.mark.parametrize(
    ("path", "part"),
    [
        (("tree", "n"), {"type": "integer", "minimum": 1}),
        (("pair", 0), {"type": "integer"}),
        (("pair", 1), {"const": 1}),
        (("tree", "m"), {}),
        ((), ROOT),
    ],
)
def test_a_path_leads_to_the_schema_of_its_place(path, part):
    assert find_part(path, ROOT) == part


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        ({"type": "string"}, "a", 5),
        ({"type": "integer", "minimum": 1}, 1, 0),
        ({"type": "integer"}, 1.0, 1.5),
        ({"type": "number"}, 10**400, True),
        ({"type": ["number", "null"]}, None, "x"),
        ({"exclusiveMaximum": 5, "type": "number"}, 4, 5),
        ({"type": "string", "format": "date"}, "2024-01-01", "today"),
        ({"type": "string", "format": "duration"}, 90, "soon"),
        ({"type": "array", "maxItems": 1}, [1], [1, 2]),
        ({"enum": ["a", 1]}, 1, True),
        ({"anyOf": [{"const": "a"}, {"$ref": "#/$defs/Tree"}]}, {}, "b"),
        ({}, "anything", object()),
    ],
)
def test_the_words_allow_what_they_say(schema, yes, no):
    assert is_allowed(yes, schema, ROOT)
    assert not is_allowed(no, schema, ROOT)
