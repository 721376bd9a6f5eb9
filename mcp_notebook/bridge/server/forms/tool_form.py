"""The forms of tools, prompts and resources in each version of MCP, and whether it accepts them.

Runs on the bridge's event loop, and in ``mcp-notebook list``. Nearly all have a simple form, which
is accepted without the SDK; its types validate all others.
"""

from typing import Any, Literal, TypeAlias, cast

import mcp_types as types
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    MODERN_PROTOCOL_VERSIONS,
    is_version_at_least,
)
from pydantic_core import ValidationError, from_json, to_json

from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.views.pages import find_page_uri
from mcp_notebook.text.missing_tools import MissingTool, explain_rejection
from mcp_notebook.wire import messages

VERSIONS = (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS)
"""The supported versions of MCP."""
SINCE = {
    "annotations": "2025-03-26",  # the title was one of them until it had a field of its own
    "title": "2025-06-18",
    "_meta": "2025-06-18",
    "outputSchema": "2025-06-18",
    "lastModified": "2025-06-18",
    "resource_link": "2025-06-18",
    "audio": "2025-03-26",
    "icons": "2025-11-25",
}
"""The versions of MCP that introduced kinds of content and fields of tools, resources and results.

They are removed for earlier versions here, because the SDK does not."""
DeclaredKind: TypeAlias = Literal["Prompt", "Resource", "ResourceTemplate"]
"""The name of the SDK's type."""
_TEXTS = ("name", "title", "description", "mimeType", "uri", "uriTemplate")
_NO_SCHEMA = {"type": "object"}
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def has_feature(protocol_version: str, feature: str) -> bool:
    """Return whether a version of MCP has a feature that `SINCE` lists."""
    return is_version_at_least(protocol_version, SINCE[feature])


def make_tool_form(
    name: str, info: messages.ToolInfo, protocol_version: str, *, shows_views: bool = False
) -> dict[str, Any]:
    """Return the JSON object of a tool in the list of tools.

    Args:
        name: The name that the tool is served under.
        info: The kernel's description of it.
        protocol_version: The client's.
        shows_views: Whether the client shows live views of results.

    Raises:
        ValueError: This version of the protocol does not accept the tool.
    """
    fields = {
        "name": name,
        "title": info.title,
        "description": info.description,
        "inputSchema": info.input_schema,
        "outputSchema": info.output_schema,
        "annotations": info.annotations,
        "icons": info.icons,
        "_meta": info.meta,
    }
    page = find_page_uri(info.view, name) if shows_views else None
    if page is not None:
        fields["_meta"] = {**(info.meta or {}), "ui": {"resourceUri": page}}
    if info.title is not None and not has_feature(protocol_version, "title"):
        fields["annotations"] = {**(info.annotations or {}), "title": info.title}
    too_new = [field for field in SINCE if not has_feature(protocol_version, field)]
    fields |= dict.fromkeys(too_new)
    given = {name: value for name, value in fields.items() if value is not None}
    return _copy_simple(given) or _validate(given, protocol_version)


def _validate(fields: dict[str, Any], protocol_version: str) -> dict[str, Any]:
    """Return a tool's form as the SDK makes it.

    Raises:
        ValueError: This version of the protocol does not accept the tool.
    """
    from mcp_types.methods import serialize_server_result  # noqa: PLC0415 - see `postponed_sdk`

    result = {"tools": [fields], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    (form,) = serialize_server_result("tools/list", protocol_version, result)["tools"]
    types.Tool.model_validate(form)  # as clients built with the SDK do with each tool
    return cast("dict[str, Any]", form)


def _copy_simple(fields: dict[str, Any]) -> dict[str, Any] | None:
    """Return the form of a tool that is certainly valid, or None.

    The SDK would make the same: in such a form, it changes only NaN and infinities.
    """
    hints, icons = fields.get("annotations", {}), fields.get("icons", [])
    is_simple = (
        _is_simple_schema(fields["inputSchema"])
        and _is_simple_schema(fields.get("outputSchema", _NO_SCHEMA))
        and hints.keys() <= {"title", *_HINTS}
        and type(hints.get("title", "")) is str
        and all(type(hints.get(name, True)) is bool for name in _HINTS)
        and all(map(_is_simple_icon, icons))
    )
    try:
        return from_json(to_json(fields, inf_nan_mode="null")) if is_simple else None
    except (ValueError, RecursionError):
        return None


def _is_simple_schema(schema: dict[str, Any]) -> bool:
    required, properties = schema.get("required", []), schema.get("properties", {})
    return (
        schema.get("type") == "object"
        and type(schema.get("$schema", "")) is str
        and type(required) is list
        and all(type(name) is str for name in required)
        and type(properties) is dict
        and all(type(each) is dict for each in properties.values())
        and None not in schema.values()
    )


def _is_simple_icon(icon: dict[str, Any]) -> bool:
    sizes = icon.get("sizes", [])
    return (
        icon.keys() <= {"src", "mimeType", "sizes"}
        and type(icon.get("src")) is str
        and type(icon.get("mimeType", "")) is str
        and type(sizes) is list
        and all(type(size) is str for size in sizes)
    )


def make_prompt_form(
    name: str,
    info: messages.ToolInfo,
    protocol_version: str,
    *,
    shows_views: bool = False,  # noqa: ARG001 - as `make_tool_form`
) -> dict[str, Any]:
    """Return the JSON object of a prompt in the list of prompts; as `make_tool_form`."""
    has_title = has_feature(protocol_version, "title")
    fields = {
        "name": name,
        "title": info.title if has_title else None,
        "description": info.description or (None if has_title else info.title),
        "arguments": _list_prompt_arguments(info.input_schema, has_title=has_title),
        "icons": info.icons if has_feature(protocol_version, "icons") else None,
        "_meta": info.meta if has_feature(protocol_version, "_meta") else None,
    }
    return make_declared_form("Prompt", fields)


def make_declared_form(kind: DeclaredKind, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON object of a prompt, resource or template, as the SDK makes it.

    Args:
        kind: What it is.
        fields: Its members; those that are None are left out.

    Raises:
        ValueError: MCP does not accept it.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    is_simple = (
        _has_texts(given)
        and all(map(_is_simple_icon, given.get("icons", [])))
        and all(map(_has_texts, given.get("arguments", [])))
    )
    try:
        if is_simple:
            return cast("dict[str, Any]", from_json(to_json(given, inf_nan_mode="null")))
    except RecursionError:
        pass
    form = getattr(types, kind).model_validate(given)
    return cast("dict[str, Any]", form.model_dump(mode="json", by_alias=True, exclude_none=True))


def _has_texts(fields: dict[str, Any]) -> bool:
    return all(type(fields.get(name, "")) is str for name in _TEXTS)


def _list_prompt_arguments(schema: dict[str, Any], *, has_title: bool) -> list[dict[str, Any]]:
    """Return the arguments of a prompt, which MCP describes by words and not by a schema.

    An empty list if there are none: MCP allows to leave it out, and programs then fail that go
    through the arguments of all prompts.
    """
    required, arguments = schema.get("required", ()), []
    for name, item in schema.get("properties", {}).items():
        keywords = item if isinstance(item, dict) else {}
        argument = {"name": name, "required": name in required}
        for keyword in ("title", "description") if has_title else ("description",):
            if keywords.get(keyword) is not None:
                argument[keyword] = keywords[keyword]
        arguments.append(argument)
    return arguments


def serialize_tool_form(form: dict[str, Any]) -> bytes:
    """Return a tool's form as JSON.

    Raises:
        ValueError: It cannot be serialized; clients would lose the whole list.
    """
    try:
        return to_json(form)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def find_rejection(entry: CatalogEntry) -> MissingTool | None:
    """Return why some or all clients do not see a tool of the catalogue; None if all see it."""
    problems = {}
    for version in VERSIONS:
        try:
            serialize_tool_form(make_tool_form(entry.name, entry.tool, version))
        except (ValueError, RecursionError) as error:
            problems[version] = _describe(error)
    if not problems:
        return None
    versions = () if len(problems) == len(VERSIONS) else tuple(problems)
    return explain_rejection(
        entry.notebook, entry.tool.name, next(iter(problems.values())), versions
    )


def _describe(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error).rstrip(".") or type(error).__name__
