"""Converts results and resources to MCP's JSON, in the client's version of the protocol.

Runs on the bridge's event loop, and for large resources in a worker thread. A content block that
the client's version does not have becomes a text that describes it: no client fails on it, and the
model still learns about it.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_notebook.protocol.versions import has_feature
from mcp_notebook.wire import resource_uris

MAX_READ = 16 * 2**20
"""Maximum bytes of one resource's content. Over stdio, the time that the SDK's client needs grows
with the square of the size: 6 s for 8 MB, minutes for 60 MB."""
AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class MakeAnswer(Protocol[AnswerT_co]):
    """Converts a call's result to the answer for a client."""

    def __call__(self, result: Result, protocol_version: str) -> AnswerT_co:
        """Return the answer for clients of this version of the protocol."""


def make_call_form(result: Result, protocol_version: str) -> dict[str, Any]:
    """Return a call's result for clients of this version, with data as base64."""
    content = [_encode_data(form) for form in make_block_forms(result, protocol_version)]
    return {"content": content, **make_rest(result, protocol_version)}


def make_rest(result: Result, protocol_version: str) -> dict[str, Any]:
    """Return what a call's result has for clients of this version besides its content blocks."""
    form: dict[str, Any] = {"isError": result.is_error}
    # A kernel may send anything.
    if isinstance(result.structured, dict) and has_feature(protocol_version, "outputSchema"):
        form["structuredContent"] = result.structured
    return form | {"_meta": dict(result.meta)} if result.meta else form


def make_prompt_form(result: Result, protocol_version: str) -> dict[str, Any]:
    """Return a call's result as the messages of a prompt, for clients of this version.

    Args:
        result: The result.
        protocol_version: The client's.

    Raises:
        ProtocolError: The call failed.
    """
    if result.is_error:
        raise ProtocolError(INTERNAL_ERROR, describe_failure(result))
    forms = make_block_forms(result, protocol_version)
    roles = [block.role or "user" for block in result.content]
    return {
        "messages": [
            {"role": role, "content": _encode_data(form)}
            for role, form in zip(roles, forms, strict=True)
        ]
    }


def make_resource_form(
    uri: str,
    result: Result,
    protocol_version: str,  # noqa: ARG001 - as `make_prompt_form`
) -> dict[str, Any]:
    """Return a call's result as the contents of a resource.

    Args:
        uri: The URI that the client reads.
        result: The result.
        protocol_version: The client's.

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
    return {"contents": contents}


def describe_failure(result: Result) -> str:
    """Return the texts of a failed call's result."""
    return "\n".join(block.text for block in result.content if isinstance(block, Text))


def make_block_forms(result: Result, protocol_version: str) -> list[dict[str, Any]]:
    """Return the content blocks of a result in MCP's form, except that data stays bytes."""
    return [_make_block_form(block, protocol_version) for block in result.content]


def make_contents(resource: Resource) -> dict[str, Any]:
    """Return the contents of a resource: its text, or its bytes as base64."""
    form = {"uri": resource.uri}
    if resource.mime_type:
        form["mimeType"] = resource.mime_type
    if isinstance(resource.data, str):
        return {**form, "text": resource.data}
    return {**form, "blob": _base64(resource.data)}


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates in a text: one in an answer would end a stdio bridge."""
    return text.encode("utf-8", "replace").decode("utf-8")


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
        text = resource_uris.describe_links([block])
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
