"""The places where a result does not match its schema."""

from mcp_notebook.kernel.schemas.object_root import make_object_root
from mcp_notebook.kernel.schemas.output.output_mismatches import find_mismatches, make_comparison


def test_each_place_that_does_not_match_has_a_line():
    schema, _ = make_object_root(
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"price": {"type": "number"}},
                "required": ["price"],
            },
        }
    )
    lines = find_mismatches(
        {"result": [{"price": "x"}, {}, {"price": 1}]},
        make_comparison(schema),
        schema,
        is_wrapped=True,
    )
    assert lines == [
        "result[0].price: got 'x' (string); allowed: number",
        "result[1]: 'price' missing",
    ]


def test_of_a_choice_the_branch_of_the_values_own_type_is_explained():
    schema = {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "integer"}}]}
        },
    }
    lines = find_mismatches({"a": [1, "x"]}, make_comparison(schema), schema, is_wrapped=False)
    assert lines == ["result.a[1]: got 'x' (string); allowed: integer"]
