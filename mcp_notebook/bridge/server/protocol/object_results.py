"""Wraps structured content in an object, for versions of MCP that only allow objects.

Pure. Since 2026-07-28, structured content can be any JSON value, and kernels send it as it is. For
clients of the handshake era, a schema with another root becomes that of an object with one
property, ``result``, and so does the data of the tool's results.
"""

from collections.abc import Mapping
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp_notebook.meta_keys import SHORTENED
from mcp_notebook.schema_keywords import DEFINITIONS, NAMED, VALUES

WRAP = "result"
"""The property that holds the data."""
_REFERENCES = ("$ref", "$dynamicRef")


def requires_objects(protocol_version: str) -> bool:
    """Return whether a version of MCP allows only objects as structured content."""
    return protocol_version in HANDSHAKE_PROTOCOL_VERSIONS


def wrap_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an output schema with ``"type": "object"`` at its root."""
    if schema.get("type") == "object":
        return schema
    content = {key: value for key, value in schema.items() if key not in DEFINITIONS}
    root: dict[str, Any] = {
        "type": "object",
        "properties": {WRAP: _move_references(content)},
        "required": [WRAP],
    }
    for key in DEFINITIONS:
        if key in schema:
            root[key] = {name: _move_references(item) for name, item in schema[key].items()}
    return root


def wrap_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``_meta`` of a result whose structured content is wrapped."""
    cuts = meta.get(SHORTENED)
    if cuts is None:
        return dict(meta)
    return {**meta, SHORTENED: [{**cut, "path": [WRAP, *cut["path"]]} for cut in cuts]}


def _move_references(schema: Any) -> Any:
    """Return a schema whose references to its own root point into `WRAP`."""
    if isinstance(schema, list):
        return [_move_references(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _REFERENCES and isinstance(value, str):
            copy[keyword] = _move_reference(value)
        elif keyword in (*NAMED, *DEFINITIONS) and isinstance(value, dict):
            copy[keyword] = {name: _move_references(item) for name, item in value.items()}
        else:
            copy[keyword] = value if keyword in VALUES else _move_references(value)
    return copy


def _move_reference(reference: str) -> str:
    if reference.startswith(tuple(f"#/{key}/" for key in DEFINITIONS)):
        return reference  # these stay at the root
    if reference == "#" or reference.startswith("#/"):
        return f"#/properties/{WRAP}{reference[1:]}"
    return reference  # an anchor
