"""Results in MCP's form, as far as the client's version of the protocol knows it.

Runs in the bridge; pure. With `bridge.server.server` a door to the MCP SDK's types. A block of a
kind that came with a later version becomes a text that says what it is and where: no client fails
on it, and its model still learns of it.
"""

from base64 import b64encode
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, is_version_at_least

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text

SINCE = {
    "annotations": "2025-03-26",  # with the title among them, until it had a place of its own
    "title": "2025-06-18",
    "_meta": "2025-06-18",
    "outputSchema": "2025-06-18",
    "lastModified": "2025-06-18",
    "resource_link": "2025-06-18",
    "audio": "2025-03-26",
    "icons": "2025-11-25",
}
"""Versions of MCP that brought kinds of content, and fields of tools, resources and results:
earlier ones are not sent them, and nothing else sorts them out (the SDK has one shape for all older
versions), icons being large."""


def knows(protocol_version: str, what: str) -> bool:
    """Tell whether a version of MCP has what `SINCE` lists."""
    return is_version_at_least(protocol_version, SINCE[what])


def call_result(result: Result, protocol_version: str) -> types.CallToolResult:
    """Return a call's result as a client of this version takes it."""
    structured = result.structured
    if not knows(protocol_version, "outputSchema"):
        structured = None
    elif protocol_version in HANDSHAKE_PROTOCOL_VERSIONS and not isinstance(structured, dict):
        structured = None  # these eras know objects only
    return types.CallToolResult(
        content=[_block(_once(block, structured), protocol_version) for block in result.content],
        structured_content=structured,
        is_error=result.is_error,
        _meta=dict(result.meta) or None,
    )


def error_result(text: str) -> types.CallToolResult:
    """Return the result of a call that failed."""
    return types.CallToolResult(content=[types.TextContent(text=cleaned(text))], is_error=True)


def contents(
    resource: Resource,
) -> types.TextResourceContents | types.BlobResourceContents:
    """Return a document's text or bytes."""
    if isinstance(resource.data, str):
        return types.TextResourceContents(
            uri=resource.uri, text=resource.data, mime_type=resource.mime_type
        )
    return types.BlobResourceContents(
        uri=resource.uri, blob=_base64(resource.data), mime_type=resource.mime_type
    )


def cleaned(text: str) -> str:
    """Replace lone surrogates: one of them in an answer would end a stdio bridge."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _once(block: ContentBlock, structured: Any) -> ContentBlock:
    """Return a long text in brief where structured content says the same."""
    if isinstance(block, Text) and block.brief is not None and structured is not None:
        return replace(block, text=block.brief)
    return block


def _block(block: ContentBlock, version: str) -> types.ContentBlock:
    block = _known(block, version)
    annotations = _annotations(block, version)
    match block:
        case Text():
            return types.TextContent(text=block.text, annotations=annotations)
        case Image():
            return types.ImageContent(
                data=_base64(block.data), mime_type=block.mime_type, annotations=annotations
            )
        case Audio():
            return types.AudioContent(
                data=_base64(block.data), mime_type=block.mime_type, annotations=annotations
            )
        case Resource():
            return types.EmbeddedResource(resource=contents(block), annotations=annotations)
        case ResourceLink():
            return types.ResourceLink(
                uri=block.uri,
                name=block.name,
                title=block.title,
                description=block.description,
                mime_type=block.mime_type,
                size=block.size,
                annotations=annotations,
            )


def _known(block: ContentBlock, version: str) -> ContentBlock:
    """Return a block, or the text that stands for it in a version that does not have its kind."""
    if isinstance(block, Audio) and not knows(version, "audio"):
        said = f"[A sound, {block.mime_type}, {len(block.data):,} bytes: {_too_old(version)}]"
    elif isinstance(block, ResourceLink) and not knows(version, "resource_link"):
        said = _link_text(block)
    else:
        return block
    return Text(
        said,
        audience=block.audience,
        priority=block.priority,
        last_modified=block.last_modified,
    )


def _annotations(block: ContentBlock, version: str) -> types.Annotations | None:
    said = {
        "audience": list(block.audience),
        "priority": block.priority,
        "lastModified": block.last_modified if knows(version, "lastModified") else None,
    }
    said = {name: value for name, value in said.items() if value not in ([], None)}
    return types.Annotations.model_validate(said) if said else None


def _link_text(link: ResourceLink) -> str:
    about = f": {link.description}" if link.description else ""
    return f"[{link.about}{about}. To be read as the resource {link.uri}]"


def _too_old(version: str) -> str:
    return f"the client speaks MCP {version}, which has no place for it"


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
