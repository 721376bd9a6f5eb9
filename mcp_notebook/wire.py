"""The link's protocol: the messages between a kernel and a bridge, and their framing.

This docstring is the protocol's text; `PROTOCOL_VERSION` names its version.

*Transport.* A byte stream: a Unix socket, or loopback TCP where there is none. The kernel listens,
bridges connect; several may, each has its own conversation.

*Frame.* A 4-byte big-endian length, then that many bytes of JSON (UTF-8, one object: the header),
then the attachments. The header's ``attachments`` member (left out when empty) lists their lengths
in bytes; they follow in that order without separators. Pictures, sounds and files travel as
attachments, and a content block names its own by index (``"data": 0``).

*Conversation.* The bridge says `Hello`. The kernel answers `Welcome` with its tools, or `Refused`
with a sentence for the user, and closes. From then on, in any order:

===========================  ===================================================================
bridge -> kernel             `Call` (id chosen by the bridge, unique in its conversation), `Cancel`
kernel -> bridge             `Tools` (the whole list, whenever it changed), `Progress` of a call,
                             `Returned` (exactly one for each call), `Goodbye` (the kernel ends
                             the conversation on purpose and says why)
===========================  ===================================================================

The end of the stream without `Goodbye` means that the kernel process is dead. A `Cancel` is still
answered by `Returned`. A receiver ignores members that it does not know, so that adding one needs
no new version; a changed meaning does.

Used by `kernel.endpoint` and `bridge.links`. Knows nothing of MCP, IPython or who is at the other
end.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.errors import FrameError

PROTOCOL_VERSION = 1
"""Raised when a message changes its meaning; both ends must have the same."""

MAX_HEADER = 64 * 2**20
"""Bytes. A header carries arguments and texts; both are bounded far below this elsewhere."""
MAX_ATTACHMENTS = 2 * 2**30
"""Bytes of all attachments of one frame together."""
_LENGTH = 4
_CHUNK = 256 * 2**10


class Message(BaseModel):
    """Base of all messages."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ToolInfo(Message):
    """What a kernel says about one tool: all that a client may be told."""

    name: str
    title: str | None = None
    description: str = ""
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None
    """MCP tool annotations, under MCP's own names (``readOnlyHint``...)."""
    icons: list[dict[str, Any]] | None = None
    meta: dict[str, Any] | None = None


class Hello(Message):
    """First message of a bridge."""

    type: Literal["hello"] = "hello"
    protocol: int = PROTOCOL_VERSION
    version: str
    """Version of the bridge's mcp-notebook, for messages to people."""
    token: str | None = None
    """The record's token; needed on TCP only."""


class Call(Message):
    """Run a tool."""

    type: Literal["call"] = "call"
    id: int
    tool: str
    arguments: dict[str, Any]
    progress: bool = False
    """The client asked for progress."""


class Cancel(Message):
    """Stop a call; unknown and ended ids are ignored."""

    type: Literal["cancel"] = "cancel"
    id: int
    reason: str = ""


class Welcome(Message):
    """The kernel takes the conversation up."""

    type: Literal["welcome"] = "welcome"
    protocol: int = PROTOCOL_VERSION
    version: str
    tools: list[ToolInfo]
    """In the order of their definition."""


class Refused(Message):
    """The kernel does not talk to this bridge."""

    type: Literal["refused"] = "refused"
    protocol: int = PROTOCOL_VERSION
    message: str


class Tools(Message):
    """The tools as they are now, in the order of their definition."""

    type: Literal["tools"] = "tools"
    tools: list[ToolInfo]


class Progress(Message):
    """How far a call is."""

    type: Literal["progress"] = "progress"
    id: int
    progress: float
    total: float | None = None
    message: str | None = None


class Returned(Message):
    """The answer to a call. `pack` and `unpack` translate it from and to a `content.Result`."""

    type: Literal["returned"] = "returned"
    id: int
    content: list[dict[str, Any]]
    structured: Any = None
    is_error: bool = False
    meta: dict[str, Any] = Field(default_factory=dict)


class Goodbye(Message):
    """The kernel ends the conversation on purpose."""

    type: Literal["goodbye"] = "goodbye"
    reason: str
    """A sentence for the user: "The kernel was restarted."."""


AnyMessage: TypeAlias = (
    Hello | Call | Cancel | Welcome | Refused | Tools | Progress | Returned | Goodbye
)
_ANY_MESSAGE: TypeAdapter[AnyMessage] = TypeAdapter(
    Annotated[AnyMessage, Field(discriminator="type")]
)
_BLOCKS: dict[str, type[ContentBlock]] = {
    "text": Text,
    "image": Image,
    "audio": Audio,
    "resource": Resource,
    "resource_link": ResourceLink,
}
_BLOCK_NAMES = {block: name for name, block in _BLOCKS.items()}


def pack(call_id: int, result: Result) -> tuple[Returned, list[bytes]]:
    """Turn a result into its message and attachments; the bytes are not copied."""
    attachments: list[bytes] = []
    content = []
    for block in result.content:
        packed: dict[str, Any] = {"type": _BLOCK_NAMES[type(block)]}
        for item in fields(block):
            value = getattr(block, item.name)
            if isinstance(value, bytes):
                packed[item.name] = len(attachments)
                attachments.append(value)
            elif value is not None and value != ():
                packed[item.name] = value
        content.append(packed)
    message = Returned(
        id=call_id,
        content=content,
        structured=result.structured,
        is_error=result.is_error,
        meta=dict(result.meta),
    )
    return message, attachments


def unpack(message: Returned, attachments: Sequence[bytes]) -> Result:
    """Turn a message and its attachments back into the result.

    Raises:
        FrameError: The message does not describe content blocks.
    """
    blocks: list[ContentBlock] = []
    for packed in message.content:
        values = dict(packed)
        try:
            block = _BLOCKS[values.pop("type")]
            if isinstance(values.get("data"), int):
                values["data"] = attachments[values["data"]]
            if "audience" in values:
                values["audience"] = tuple(values["audience"])
            blocks.append(block(**values))
        except (KeyError, IndexError, TypeError) as error:
            raise FrameError(f"A result holds a content block that cannot be read: {error}.") from error
    return Result(blocks, message.structured, message.is_error, message.meta)


def encode(message: AnyMessage, attachments: Sequence[bytes] = ()) -> list[bytes]:
    """Return the frame as a list of buffers to write one after the other."""
    header = message.model_dump(exclude_defaults=False)
    if attachments:
        header["attachments"] = [len(attachment) for attachment in attachments]
    body = to_json(header, inf_nan_mode="null", serialize_unknown=True)
    return [len(body).to_bytes(_LENGTH, "big") + body, *attachments]


async def read_message(reader: asyncio.StreamReader) -> tuple[AnyMessage, list[bytes]] | None:
    """Read one frame; None at the end of the stream, also when it ends within a frame.

    Raises:
        FrameError: The bytes are no frame of this protocol; the stream cannot be used further.
    """
    try:
        length = int.from_bytes(await reader.readexactly(_LENGTH), "big")
        if not 0 < length <= MAX_HEADER:
            raise FrameError(f"A frame's header of {length} bytes; at most {MAX_HEADER} are allowed.")
        message, lengths = _parse(await reader.readexactly(length))
        return message, [await _read_attachment(reader, size) for size in lengths]
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _parse(body: bytes) -> tuple[AnyMessage, list[int]]:
    try:
        header = from_json(body)
        lengths = header.pop("attachments", [])
        message = _ANY_MESSAGE.validate_python(header)
        valid = all(isinstance(size, int) and size >= 0 for size in lengths)
    except (ValueError, AttributeError, TypeError) as error:
        reason = str(error.errors()[0]["msg"]) if isinstance(error, ValidationError) else str(error)
        raise FrameError(f"A frame's header cannot be read: {reason}.") from error
    if not valid or sum(lengths) > MAX_ATTACHMENTS:
        raise FrameError(f"Attachments of {lengths} bytes; at most {MAX_ATTACHMENTS} are allowed.")
    return message, lengths


async def _read_attachment(reader: asyncio.StreamReader, size: int) -> bytes:
    # readexactly would hold the data twice: once in the reader's buffer, once in what it returns.
    chunks: list[bytes] = []
    missing = size
    while missing:
        chunk = await reader.read(min(missing, _CHUNK))
        if not chunk:
            raise asyncio.IncompleteReadError(b"", missing)
        chunks.append(chunk)
        missing -= len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


