"""JSON Schema's keywords by what they hold, for all code that walks a schema. Pure constants."""

VALUES = frozenset({"const", "enum", "default", "examples"})
"""Keywords that hold values, not schemas."""
SINGLE = frozenset(
    {
        *("items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames"),
        *("unevaluatedProperties", "not", "if", "then", "else"),
    }
)
"""Keywords that hold one schema."""
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords that hold a list of schemas."""
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords that hold schemas by name, where a name may be the same as a keyword."""
DEFINITIONS = ("$defs", "definitions")
"""Keywords that hold schemas by name for references."""
