"""Our types -> MCP's, in the shape that the client's version of the protocol has for them.

Runs on the bridge's event loop, and for large resources in a worker thread. A content block that
the client's version does not have becomes a text that says what and where it is: no client fails on
it, and the model still learns about it.
"""

import math
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, get_args

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp_notebook.bridge.server.versions import has_feature
from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.wire import messages

_LOG_LEVELS = get_args(types.LoggingLevel)
PROGRESS_STEP = 1e-6
"""What is added to progress that has not increased: MCP requires that every progress notification
exceeds the previous one, but a new message or a second loop does not advance it."""


def make_call_result(
    result: Result, protocol_version: str, *, takes_structured: bool = True
) -> types.CallToolResult:
    """Return a call's result for clients of this version.

    Args:
        result: The result.
        protocol_version: The client's.
        takes_structured: Whether the client gets structured content at all.
    """
    structured = result.structured
    if not takes_structured or not has_feature(protocol_version, "outputSchema"):
        structured = None
    elif protocol_version in HANDSHAKE_PROTOCOL_VERSIONS and not isinstance(structured, dict):
        structured = None  # this era has objects only
    return types.CallToolResult(
        content=[
            _make_block(_shorten_text(block, structured), protocol_version)
            for block in result.content
        ],
        structured_content=structured,
        is_error=result.is_error,
        _meta=dict(result.meta) or None,
    )


def make_error_result(text: str) -> types.CallToolResult:
    """Return the result of a failed call."""
    return types.CallToolResult(
        content=[types.TextContent(text=replace_surrogates(text))], is_error=True
    )


def make_contents(
    resource: Resource,
) -> types.TextResourceContents | types.BlobResourceContents:
    """Return the contents of a resource: its text, or its bytes as base64."""
    if isinstance(resource.data, str):
        return types.TextResourceContents(
            uri=resource.uri, text=resource.data, mime_type=resource.mime_type
        )
    return types.BlobResourceContents(
        uri=resource.uri, blob=_base64(resource.data), mime_type=resource.mime_type
    )


def make_progress_sender(
    ctx: ServerRequestContext[Any],
) -> Callable[[messages.Progress], Awaitable[None]]:
    """Return a function that sends the client progress, which always increases."""
    last = 0.0

    async def send(progress: messages.Progress) -> None:
        nonlocal last
        done = progress.progress
        if done is None or done <= last:
            done = max(last + PROGRESS_STEP, math.nextafter(last, math.inf))
        last = done
        message = None if progress.message is None else replace_surrogates(progress.message)
        await ctx.session.report_progress(done, progress.total, message)

    return send


def make_log_sender(ctx: ServerRequestContext[Any]) -> Callable[[messages.Log], Awaitable[None]]:
    """Return a function that sends the client log messages."""

    async def send(log: messages.Log) -> None:
        level = log.level if log.level in _LOG_LEVELS else "info"
        params = types.LoggingMessageNotificationParams.model_validate(
            {"level": level, "logger": log.logger, "data": replace_surrogates(log.text)}
        )
        # Not `send_log_message`: it warns at every message that MCP deprecates logging.
        await ctx.session.send_notification(
            types.LoggingMessageNotification(params=params), ctx.request_id
        )

    return send


def replace_surrogates(text: str) -> str:
    """Return the text without lone surrogates: one in an answer would end a stdio bridge."""
    return text.encode("utf-8", "replace").decode("utf-8")


def describe_link(link: ResourceLink) -> str:
    """Return a link as a text for a model."""
    about = f": {link.description}" if link.description else ""
    return f"[{link.about}{about}. Read it as the resource {link.uri}.]"


def _shorten_text(block: ContentBlock, structured: Any) -> ContentBlock:
    """Return a block whose long text is shortened if the structured content repeats it."""
    if isinstance(block, Text) and block.brief is not None and structured is not None:
        return replace(block, text=block.brief)
    return block


def _make_block(block: ContentBlock, version: str) -> types.ContentBlock:
    block = _adapt_to_version(block, version)
    annotations = _make_annotations(block, version)
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
            return types.EmbeddedResource(resource=make_contents(block), annotations=annotations)
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


def _adapt_to_version(block: ContentBlock, version: str) -> ContentBlock:
    """Return the block, or a text in its place if the version does not have its kind."""
    if isinstance(block, Audio) and not has_feature(version, "audio"):
        text = (
            f"[Audio, {block.mime_type}, {len(block.data):,} bytes: the client speaks MCP "
            f"{version}, which has no audio.]"
        )
    elif isinstance(block, ResourceLink) and not has_feature(version, "resource_link"):
        text = describe_link(block)
    else:
        return block
    return Text(
        text,
        audience=block.audience,
        priority=block.priority,
        last_modified=block.last_modified,
    )


def _make_annotations(block: ContentBlock, version: str) -> types.Annotations | None:
    fields = {
        "audience": list(block.audience),
        "priority": block.priority,
        "lastModified": block.last_modified if has_feature(version, "lastModified") else None,
    }
    annotations = {name: value for name, value in fields.items() if value not in ([], None)}
    return types.Annotations.model_validate(annotations) if annotations else None


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
