"""The forms of tools, prompts and resources in each version of MCP, and whether it accepts them.

Runs on the bridge's event loop, and in ``mcp-notebook list``. A client that is built with an SDK
drops the whole list for one form that is not valid, so each is checked here.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.views.pages import find_page_uri
from mcp_notebook.lean_json import from_json, to_json
from mcp_notebook.protocol.versions import MODERN_VERSIONS, SINCE, VERSIONS, has_feature
from mcp_notebook.text.missing_tools import MissingTool, explain_rejection
from mcp_notebook.wire import messages

_TEXTS = ("name", "title", "description", "mimeType", "uri", "uriTemplate")
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class _Icon(Struct, frozen=True, rename="camel"):
    """The form of an icon."""

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


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
    fields: dict[str, Any] = {
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
    _check_schema("inputSchema", given["inputSchema"], protocol_version)
    if "outputSchema" in given and protocol_version not in MODERN_VERSIONS:  # since then, any
        _check_schema("outputSchema", given["outputSchema"], protocol_version)
    if "annotations" in given:
        given["annotations"] = _check_annotations(given["annotations"])
    return _copy(given)


def _check_schema(where: str, schema: Mapping[str, Any], version: str) -> None:
    """Check the members of a schema whose form MCP defines.

    Raises:
        ValueError: One of them has another form.
    """
    required, properties = schema.get("required", []), schema.get("properties", {})
    if schema.get("type") != "object":
        raise ValueError(f"{where}.type: it must be 'object'")
    if not isinstance(schema.get("$schema", ""), str):
        raise ValueError(f"{where}.$schema: it must be a string")  # noqa: TRY004 - as the others
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise ValueError(f"{where}.required: it must be a list of names")
    if not isinstance(properties, dict) or (
        version not in MODERN_VERSIONS
        and not all(isinstance(each, dict) for each in properties.values())
    ):
        raise ValueError(f"{where}.properties: they must be objects")


def _check_annotations(hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotations of a tool that MCP has.

    Raises:
        ValueError: One of them has another type.
    """
    kinds = {"title": str, **dict.fromkeys(_HINTS, bool)}
    known = {name: hints[name] for name in kinds if hints.get(name) is not None}
    for name, value in known.items():
        if type(value) is not kinds[name]:
            raise ValueError(f"annotations.{name}: it must be a {kinds[name].__name__}")
    return known


def _copy(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a form as clients read it, without NaN and infinities.

    Raises:
        ValueError: It is not JSON, or one of its texts or icons is none.
    """
    for item in (fields, *fields.get("arguments", ())):
        for name in _TEXTS:
            if not isinstance(item.get(name, ""), str):
                raise ValueError(f"{name}: it must be a string")  # noqa: TRY004 - as the others
    try:
        msgspec.convert(fields.get("icons", ()), list[_Icon])
    except msgspec.ValidationError as error:
        raise ValueError(f"icons: {error}") from None
    try:
        copy: dict[str, Any] = from_json(to_json(fields))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return copy


def make_prompt_form(
    name: str,
    info: messages.ToolInfo,
    protocol_version: str,
    *,
    shows_views: bool = False,  # noqa: ARG001 - as `make_tool_form`
) -> dict[str, Any]:
    """Return the JSON object of a prompt in the list of prompts; as `make_tool_form`."""
    _check_schema("inputSchema", info.input_schema, protocol_version)
    has_title = has_feature(protocol_version, "title")
    fields = {
        "name": name,
        "title": info.title if has_title else None,
        "description": info.description or (None if has_title else info.title),
        "arguments": _list_prompt_arguments(info.input_schema, has_title=has_title),
        "icons": info.icons if has_feature(protocol_version, "icons") else None,
        "_meta": info.meta if has_feature(protocol_version, "_meta") else None,
    }
    return make_declared_form(fields)


def make_declared_form(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON object of a prompt, resource or template.

    Args:
        fields: Its members; those that are None are left out.

    Raises:
        ValueError: MCP does not accept it.
    """
    return _copy({name: value for name, value in fields.items() if value is not None})


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


def find_rejection(entry: CatalogEntry) -> MissingTool | None:
    """Return why some or all clients do not see a tool of the catalogue; None if all see it."""
    problems = {}
    for version in VERSIONS:
        try:
            make_tool_form(entry.name, entry.tool, version)
        except ValueError as error:
            problems[version] = str(error).rstrip(".") or type(error).__name__
    if not problems:
        return None
    versions = () if len(problems) == len(VERSIONS) else tuple(problems)
    return explain_rejection(
        entry.notebook, entry.tool.name, next(iter(problems.values())), versions
    )
