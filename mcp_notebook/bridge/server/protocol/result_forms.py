"""Converts results and resources to MCP's types, in the client's version of the protocol.

Runs on the bridge's event loop, and for large resources in a worker thread. A content block that
the client's version does not have becomes a text that describes it: no client fails on it, and the
model still learns about it.
"""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import mcp_types as types

from mcp_notebook.bridge.server.protocol.object_results import WRAP, requires_objects, wrap_meta
from mcp_notebook.bridge.server.protocol.protocol_error import INTERNAL_ERROR, ProtocolError
from mcp_notebook.bridge.server.protocol.tool_form import has_feature
from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.text.missing_tools import READ_RESOURCE
from mcp_notebook.wire import resource_uris

MAX_READ = 16 * 2**20
"""Maximum bytes of one resource's content. Over stdio, the time that the SDK's client needs grows
with the square of the size: 6 s for 8 MB, minutes for 60 MB."""
AnswerT_co = TypeVar("AnswerT_co", covariant=True)
MISSING: Any = object()
"""Stands for no structured content, as None is a value."""
_NULL = f"null {secrets.token_hex(8)}"
"""Stands for structured content that is null in the SDK, which leaves out members that are null."""


class MakeAnswer(Protocol[AnswerT_co]):
    """Converts a call's result to the answer for a client."""

    def __call__(
        self, result: Result, protocol_version: str, *, takes_structured: bool = True
    ) -> AnswerT_co:
        """Return the answer for clients of this version of the protocol."""


def make_call_result(
    result: Result, protocol_version: str, *, takes_structured: bool = True
) -> types.CallToolResult:
    """Return a call's result for clients of this version.

    Args:
        result: The result.
        protocol_version: The client's.
        takes_structured: Whether the client gets structured content.
    """
    structured = choose_structured(result, protocol_version, takes_structured=takes_structured)
    forms = make_block_forms(result, protocol_version, structured)
    fields = {
        "content": [_encode_data(form) for form in forms],
        "isError": result.is_error,
        "_meta": make_meta(result, protocol_version) or None,
    }
    if structured is not MISSING:
        fields["structuredContent"] = _NULL if structured is None else structured
    return types.CallToolResult.model_validate(fields)


def restore_null(form: dict[str, Any]) -> dict[str, Any]:
    """Return a result that the SDK has dumped, with structured content that is null."""
    if form.get("structuredContent") == _NULL:
        form["structuredContent"] = None
    return form


def make_prompt_result(
    result: Result, protocol_version: str, *, takes_structured: bool = True
) -> types.GetPromptResult:
    """Return a call's result as the messages of a prompt, for clients of this version.

    Args:
        result: The result.
        protocol_version: The client's.
        takes_structured: Ignored: prompts have no structured content.

    Raises:
        ProtocolError: The call failed.
    """
    del takes_structured
    if result.is_error:
        raise ProtocolError(INTERNAL_ERROR, describe_failure(result))
    forms = make_block_forms(result, protocol_version, None)
    roles = [block.role or "user" for block in result.content]
    messages = [
        {"role": role, "content": _encode_data(form)}
        for role, form in zip(roles, forms, strict=True)
    ]
    return types.GetPromptResult.model_validate({"messages": messages})


def make_resource_result(
    uri: str,
    result: Result,
    protocol_version: str,  # noqa: ARG001 - as `make_call_result`
    *,
    takes_structured: bool = True,  # noqa: ARG001 - resources have no structured content
) -> types.ReadResourceResult:
    """Return a call's result as the contents of a resource.

    Args:
        uri: The URI that the client reads.
        result: The result.
        protocol_version: The client's.
        takes_structured: Ignored.

    Raises:
        ProtocolError: The call failed, or the contents are too large.
    """
    data = {"uri": replace_surrogates(uri)}
    if result.is_error:
        raise ProtocolError(INTERNAL_ERROR, describe_failure(result), data)
    documents = [block for block in result.content if isinstance(block, Resource)]
    size = sum(len(document.data) for document in documents)
    if size > MAX_READ:
        what = (
            f"The resource {data['uri']!r} has {size:,} bytes, and at most {MAX_READ:,} are "
            "sent. Its author can return less, or a file by a tool."
        )
        raise ProtocolError(INTERNAL_ERROR, what, data)
    contents = [make_contents(replace(document, uri=data["uri"])) for document in documents]
    return types.ReadResourceResult(contents=contents)


def describe_failure(result: Result) -> str:
    """Return the texts of a failed call's result."""
    return "\n".join(block.text for block in result.content if isinstance(block, Text))


def choose_structured(result: Result, protocol_version: str, *, takes_structured: bool) -> Any:
    """Return the structured content that a client gets, or `MISSING`.

    Args:
        result: The result.
        protocol_version: The client's.
        takes_structured: Whether the client gets structured content.
    """
    structured = result.structured
    if not takes_structured or (structured is None and not result.is_bare):
        return MISSING
    if not requires_objects(protocol_version):
        return structured
    if not has_feature(protocol_version, "outputSchema"):
        return MISSING
    if result.is_bare:
        return {WRAP: structured}
    return structured if isinstance(structured, dict) else MISSING


def make_meta(result: Result, protocol_version: str) -> dict[str, Any]:
    """Return the ``_meta`` of a result for clients of this version."""
    if result.is_bare and result.meta and requires_objects(protocol_version):
        return wrap_meta(result.meta)
    return dict(result.meta)


def make_block_forms(
    result: Result, protocol_version: str, structured: Any
) -> list[dict[str, Any]]:
    """Return the content blocks of a result in MCP's form, except that data stays bytes.

    Args:
        result: The result.
        protocol_version: The client's.
        structured: The structured content that the client gets.
    """
    return [
        _make_block_form(_shorten_text(block, structured), protocol_version)
        for block in result.content
    ]


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


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates in a text: one in an answer would end a stdio bridge."""
    return text.encode("utf-8", "replace").decode("utf-8")


def describe_links(links: Sequence[ResourceLink]) -> str:
    """Describe links to a model in a text: the target, and the call that reads it.

    Args:
        links: One, or all forms of one original.
    """
    first, *others = links
    about = f": {first.description}" if first.description else ""
    if resource_uris.find_kernel_id(first.uri) is None:
        return f"[{first.about}{about}. Its address: {first.uri}]"
    forms = f", also as {' and '.join(link.name for link in others)} there" if others else ""
    return f'[{first.about}{about}. Read it by {READ_RESOURCE}(uri="{first.uri}"){forms}]'


def _shorten_text(block: ContentBlock, structured: Any) -> ContentBlock:
    """Return a block whose long text is shortened if the structured content repeats it."""
    if isinstance(block, Text) and block.brief is not None and structured is not MISSING:
        return replace(block, text=block.brief)
    return block


def _make_block_form(block: ContentBlock, version: str) -> dict[str, Any]:
    block = _adapt_to_version(block, version)
    form: dict[str, Any]
    match block:
        case Text():
            form = {"type": "text", "text": block.text}
        case Image():
            form = {"type": "image", "data": block.data, "mimeType": block.mime_type}
        case Audio():
            form = {"type": "audio", "data": block.data, "mimeType": block.mime_type}
        case Resource():
            kind = "text" if isinstance(block.data, str) else "blob"
            resource = {"uri": block.uri, kind: block.data, "mimeType": block.mime_type}
            form = {"type": "resource", "resource": resource}
        case ResourceLink():
            fields = {
                "uri": block.uri,
                "name": block.name,
                "title": block.title,
                "description": block.description,
                "mimeType": block.mime_type,
                "size": block.size,
            }
            form = {"type": "resource_link"}
            form |= {name: value for name, value in fields.items() if value is not None}
    annotations = _make_annotations(block, version)
    if annotations:
        form["annotations"] = annotations
    return form


def _encode_data(form: dict[str, Any]) -> dict[str, Any]:
    """Return a content block with its bytes as base64."""
    return {
        name: _base64(value)
        if isinstance(value, bytes)
        else _encode_data(value)
        if isinstance(value, dict)
        else value
        for name, value in form.items()
    }


def _adapt_to_version(block: ContentBlock, version: str) -> ContentBlock:
    """Return the block, or a text in its place if the version does not have its kind."""
    if isinstance(block, Audio) and not has_feature(version, "audio"):
        text = (
            f"[Audio, {block.mime_type}, {len(block.data):,} bytes: the client speaks MCP "
            f"{version}, which has no audio.]"
        )
    elif isinstance(block, ResourceLink) and not has_feature(version, "resource_link"):
        text = describe_links([block])
    else:
        return block
    return Text(
        text,
        audience=block.audience,
        priority=block.priority,
        last_modified=block.last_modified,
    )


def _make_annotations(block: ContentBlock, version: str) -> dict[str, Any]:
    annotations: dict[str, Any] = {}
    if block.audience:
        annotations["audience"] = list(block.audience)
    if block.priority is not None:
        annotations["priority"] = block.priority
    if block.last_modified is not None and has_feature(version, "lastModified"):
        annotations["lastModified"] = block.last_modified
    return annotations


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
