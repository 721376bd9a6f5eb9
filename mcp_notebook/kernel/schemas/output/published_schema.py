"""The output schema that clients get, and the structured content that matches it: always objects.

Pure. Up to 2025-11-25, MCP only allows objects as structured content, and some clients show their
model nothing else of a result. So the data has an object at its root in all versions, with room for
a text, `ABOUT`, on what the data leaves out. The data of an object with named properties stands at
the root, and any other in the property `RESULT`.
"""

from typing import Any

from mcp_notebook.schema_keywords import DEFINITIONS, rewrite_schema

RESULT = "result"
"""The property that holds the data, unless they are the object at the root."""
ABOUT = "about_this_result"
"""The property that says what the data leaves out."""
_ABOUT_SCHEMA = {
    "type": "string",
    "description": "What the data leaves out: what is missing, and what the call printed or drew.",
}
_REFERENCES = ("$ref", "$dynamicRef")
_EXTENSIBLE = frozenset(
    {"type", "properties", "required", "additionalProperties", "title", "description", *DEFINITIONS}
)
"""Keywords of a schema that still means the same with another property."""


def is_at_root(schema: dict[str, Any]) -> bool:
    """Return whether data of this schema stands at the root of the structured content."""
    is_extensible = schema.get("type") == "object" and schema.keys() <= _EXTENSIBLE
    return is_extensible and ABOUT not in schema.get("properties", {})


def publish_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the output schema that clients get, given that of the data."""
    if is_at_root(schema):
        return {**schema, "properties": {**schema.get("properties", {}), ABOUT: _ABOUT_SCHEMA}}
    content = {key: value for key, value in schema.items() if key not in DEFINITIONS}
    root: dict[str, Any] = {
        "type": "object",
        "properties": {RESULT: _move_references(content), ABOUT: _ABOUT_SCHEMA},
        "required": [RESULT],
    }
    for key in DEFINITIONS:
        if key in schema:
            root[key] = {name: _move_references(item) for name, item in schema[key].items()}
    return root


def _move_references(schema: Any) -> Any:
    """Return a schema whose references to its own root point into `RESULT`."""

    def move(part: dict[str, Any]) -> dict[str, Any]:
        references = {key: part[key] for key in _REFERENCES if isinstance(part.get(key), str)}
        return part | {key: _move_reference(value) for key, value in references.items()}

    return rewrite_schema(schema, move)


def _move_reference(reference: str) -> str:
    if reference.startswith(tuple(f"#/{key}/" for key in DEFINITIONS)):
        return reference  # these stay at the root
    if reference == "#" or reference.startswith("#/"):
        return f"#/properties/{RESULT}{reference[1:]}"
    return reference  # an anchor
