"""Results and resources <-> messages with attachments.

Runs on both sides, pure. Bytes become attachments and are never copied.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from msgspec import Struct, ValidationError, convert, structs

from mcp_notebook.content import (
    Audience,
    Audio,
    ContentBlock,
    Image,
    Resource,
    ResourceLink,
    Result,
    Role,
    Text,
)
from mcp_notebook.errors import FrameError, FrameTooLarge
from mcp_notebook.wire import messages
from mcp_notebook.wire.frames import describe_error, replace_surrogates
from mcp_notebook.wire.messages import PackedResult


class _Packed(Struct, frozen=True, kw_only=True):
    """A block in a message; `data` that is a number is the index of an attachment."""

    audience: tuple[Audience, ...] = ()
    priority: float | None = None
    last_modified: str | None = None
    role: Role | None = None


class _PackedText(_Packed, frozen=True, kw_only=True):
    text: str


class _PackedImage(_Packed, frozen=True, kw_only=True):
    data: int
    mime_type: str = "image/png"


class _PackedAudio(_Packed, frozen=True, kw_only=True):
    data: int
    mime_type: str = "audio/wav"


class _PackedResource(_Packed, frozen=True, kw_only=True):
    uri: str
    data: int | str
    mime_type: str = "text/plain"


class _PackedResourceLink(_Packed, frozen=True, kw_only=True):
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


_BLOCKS: dict[str, tuple[type[ContentBlock], type[_Packed]]] = {
    "text": (Text, _PackedText),
    "image": (Image, _PackedImage),
    "audio": (Audio, _PackedAudio),
    "resource": (Resource, _PackedResource),
    "resource_link": (ResourceLink, _PackedResourceLink),
}
_NAMES = {kind: name for name, (kind, _) in _BLOCKS.items()}
_FIELDS = {name: [item.name for item in fields(kind)] for name, (kind, _) in _BLOCKS.items()}


def pack_result(
    call_id: int, result: Result, **about_call: Any
) -> tuple[messages.Returned, list[bytes]]:
    """Turn a result into its message and attachments; the bytes are not copied.

    Args:
        call_id: The call's id in the conversation.
        result: Its result.
        about_call: Other fields of the message.

    Raises:
        TypeError: Something in the result's content is not a content block.
    """
    attachments: list[bytes] = []
    content = [_pack_block(block, attachments) for block in result.content]
    message = messages.Returned(
        id=call_id,
        content=content,
        structured=result.structured,
        is_error=result.is_error,
        meta=dict(result.meta),
        **about_call,
    )
    return message, attachments


def _pack_block(block: ContentBlock, attachments: list[bytes]) -> dict[str, Any]:
    name = _NAMES.get(type(block)) or _find_name(block)
    if name is None:
        raise TypeError(
            f"A result contains a {type(block).__name__!r}, which is not a content block."
        )
    packed: dict[str, Any] = {"type": name}
    for field in _FIELDS[name]:
        value = getattr(block, field)
        if value is None or value == ():
            continue
        if isinstance(value, bytes | bytearray | memoryview):
            packed[field] = len(attachments)
            # bytes() gives bytes back uncopied; the others may change or count in larger units.
            attachments.append(bytes(value))
        else:
            packed[field] = value
    return packed


def _find_name(block: ContentBlock) -> str | None:
    """Return the type of a block whose class is derived from one of the block classes."""
    return next((name for name, (kind, _) in _BLOCKS.items() if isinstance(block, kind)), None)


def make_failure(error: Exception) -> Result:
    """Return the result of a call whose own result cannot be sent because of an error."""
    text = f"The result could not be sent: {type(error).__name__}: {error}"
    if isinstance(error, FrameTooLarge):
        text = (
            "The tool has run, but its result is too large to be sent: its texts and data take "
            f"{error.size:,} bytes, and the limit is {error.most:,}. Request a smaller part at a "
            "time. The tool's author can return a long text as a file (a `Path`), which becomes "
            "a link, or set a lower limit `max_result_chars`, beyond which texts are cut."
        )
    return Result([Text(text)], is_error=True)


def unpack_result(message: PackedResult, attachments: Sequence[bytes]) -> Result:
    """Turn a message and its attachments back into the result.

    Raises:
        FrameError: The message does not describe content blocks.
    """
    blocks = tuple([_unpack_block(packed, attachments) for packed in message.content])
    return Result(blocks, message.structured, message.is_error, message.meta)


def _unpack_block(packed: dict[str, Any], attachments: Sequence[bytes]) -> ContentBlock:
    name = packed.get("type")
    if not isinstance(name, str) or name not in _BLOCKS:
        raise FrameError(f"A result contains a block of unknown type {name!r:.80}.")
    kind, form = _BLOCKS[name]
    try:
        members = structs.asdict(convert(packed, form))
        if isinstance(members.get("data"), int):
            members["data"] = _find_attachment(members["data"], attachments)
        return kind(**members)
    except (ValidationError, ValueError) as error:
        reason = describe_error(error)
        raise FrameError(f"A result's {name} block cannot be read: {reason}.") from error


def _find_attachment(index: int, attachments: Sequence[bytes]) -> bytes:
    if not 0 <= index < len(attachments):
        raise ValueError(f"it refers to attachment {index} of {len(attachments)}")
    return attachments[index]


def pack_resource(request_id: int, resource: Resource) -> tuple[messages.Contents, list[bytes]]:
    """Turn a resource into its message and attachment; bytes are not copied."""
    data = resource.data
    message = messages.Contents(
        id=request_id,
        uri=resource.uri,
        mime_type=resource.mime_type,
        is_text=isinstance(data, str),
    )
    return message, [replace_surrogates(data).encode() if isinstance(data, str) else bytes(data)]


def unpack_resource(message: messages.Contents, attachments: Sequence[bytes]) -> Resource:
    """Turn a message and its attachment back into the resource.

    Raises:
        FrameError: The message does not have exactly one attachment.
    """
    if len(attachments) != 1:
        raise FrameError(f"A resource's content came in {len(attachments)} attachments.")
    data = attachments[0].decode("utf-8", "replace") if message.is_text else attachments[0]
    return Resource(message.uri, data, message.mime_type)
