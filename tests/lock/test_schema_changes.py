"""No value that was allowed is refused without a change that says so: any schemas, any values."""

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mcp_notebook.lock.schema_changes import compare_schemas

BOUND = st.integers(-2, 3)
LEAF = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={
            "minimum": BOUND,
            "maximum": BOUND,
            "exclusiveMinimum": BOUND,
            "exclusiveMaximum": BOUND,
            "multipleOf": st.integers(1, 3),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "minLength": st.integers(0, 2),
            "maxLength": st.integers(0, 2),
            "pattern": st.sampled_from(["a", "^b"]),
        },
    ),
    st.fixed_dictionaries({"enum": st.lists(st.sampled_from(["a", 1, None, 0.5]), min_size=1)}),
    st.fixed_dictionaries({"const": st.sampled_from(["a", 1, True])}),
    st.fixed_dictionaries(
        {"type": st.lists(st.sampled_from(["null", "integer", "string"]), min_size=1, unique=True)}
    ),
    st.fixed_dictionaries({"$ref": st.sampled_from(["#/$defs/A", "#/$defs/B"])}),
    st.booleans(),
    st.just({}),
)


def extend(inner):
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("array")},
            optional={
                "items": inner,
                "prefixItems": st.lists(inner, max_size=2),
                "minItems": st.integers(0, 2),
                "uniqueItems": st.booleans(),
                "contains": inner,
                "minContains": st.integers(0, 2),
            },
        ),
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from("ab"), inner),
            },
            optional={
                "required": st.lists(st.sampled_from("ab"), unique=True),
                "additionalProperties": inner,
                "patternProperties": st.dictionaries(st.sampled_from(["a", "^b"]), inner),
            },
        ),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries(
            {"anyOf": st.lists(inner, min_size=1, max_size=2), "type": st.just("string")}
        ),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"if": inner}, optional={"then": inner, "else": inner}),
    )


SCHEMA = st.recursive(LEAF, extend, max_leaves=5)
VALUE = st.recursive(
    st.sampled_from([None, True, False, -1, 0, 1, 2, 3, 0.5, "", "a", "b", "ab"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=4,
)
DEFINITION = st.sampled_from(
    [{"type": "integer"}, {"type": "number"}, {"type": "string"}, {"items": {"$ref": "#/$defs/A"}}]
)


@given(SCHEMA, SCHEMA, DEFINITION, DEFINITION, st.lists(VALUE, min_size=5, max_size=10))
def test_a_value_that_is_no_longer_allowed_is_never_a_compatible_change(
    old, new, one, other, values
):
    old = {"items": old, "$defs": {"A": one, "B": {"type": "boolean"}}}
    new = {"items": new, "$defs": {"A": other, "B": {"type": "boolean"}}}
    allows = Draft202012Validator(old).is_valid, Draft202012Validator(new).is_valid
    directions = {direction for direction, _ in compare_schemas(old, new)}
    for value in values:
        if allows[0]([value]) and not allows[1]([value]):
            # A property with its own schema where any was allowed is taken for an addition.
            assert directions & {"narrower", "both", "added"}
        if allows[1]([value]) and not allows[0]([value]):
            assert directions & {"wider", "both", "added"}
    assert not compare_schemas(old, old)


def test_an_alternative_with_further_properties_does_not_stand_for_one_that_is_gone():
    options = {"type": "object", "properties": {"year": {"type": "integer"}}}
    old = {"properties": {"by": {"anyOf": [{"type": "object"}, options]}}}
    new = {"properties": {"by": {"anyOf": [options, {"type": "null"}]}}}
    assert compare_schemas(old, new) == [
        ("narrower", "`by` no longer allows object"),
        ("wider", "`by` also allows null"),
    ]


def test_definitions_that_all_refer_to_each_other_end_the_comparison_and_not_the_bridge():
    def make_schema(maximum):
        names = [f"N{number}" for number in range(6)]
        definitions = {
            name: {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "maximum": maximum},
                    "next": {"anyOf": [{"$ref": f"#/$defs/{x}"} for x in names if x != name]},
                },
            }
            for name in names
        }
        return {"properties": {"first": {"$ref": "#/$defs/N0"}}, "$defs": definitions}

    assert compare_schemas(make_schema(5), make_schema(6)) == [
        ("both", "the arguments changed, in too many places to compare them")
    ]
