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
bridge -> kernel             `Call` (id chosen by the bridge, unique in its conversation),
                             `Cancel`, `Answer` to a question of a call, `ListResources`,
                             `ReadResource` (ids as of calls, from the same numbers)
kernel -> bridge             `Tools` (the whole list, whenever it changed), `Progress` of a call,
                             `Log` of a call, `Ask` and `Withdraw` (a question of a call),
                             `Returned` (exactly one for each call, its last message),
                             `Resources` (exactly one for each `ListResources`), `Contents`
                             (exactly one for each `ReadResource`), `Goodbye`
                             (the kernel ends the conversation on purpose and says why)
===========================  ===================================================================

*Questions.* A call whose `Call` says that its client ``can_elicit`` may `Ask`, several things at a
time; it waits, without a limit of its own, for an `Answer` to each, unless it takes a question back
with `Withdraw`. What a question is answered that is no longer open is ignored.

*Resources.* What a kernel keeps besides results, by URIs that begin with `resource_prefix` of its
record's id. They are listed at once, also while a cell runs, in the order of their numbers: a
number is never given twice in a conversation. A content, text as UTF-8, is the one attachment of
its message. A kernel is asked only if its `Welcome` says that it has ``resources``: an older one
would take the question for an error and hang up. It says nothing of them unasked, so that it need
not know whether the bridge does.

The end of the stream without `Goodbye` means that the kernel process is dead. A `Cancel` is still
answered by `Returned`. Calls whose bridge is gone run on: a bridge that ends cancels its own. A
receiver ignores members that it does not know, in messages and in content blocks, so that adding
one needs no new version; a changed meaning does.

*Values.* What JSON cannot say is sent as the nearest thing it can: NaN and infinity as null, a lone
surrogate as U+FFFD, bytes outside attachments as base64 text, what contains itself as "...". So a
value never breaks a link; what is too large is refused by `encode` before a byte is written.

Used by `kernel.link.endpoint` and `bridge.kernels.links`. Knows nothing of MCP, IPython or who is
at the other end.
"""

import asyncio
import io
import json
import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
)
from pydantic_core import from_json, to_json

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.errors import FrameError

PROTOCOL_VERSION = 1
"""Raised when a message changes its meaning; both ends must have the same."""

SCHEME = "notebook"
"""Of the URIs of kernels' resources."""
MAX_HEADER = 64 * 2**20
"""Bytes. A header carries arguments and texts; both are bounded far below this elsewhere."""
MAX_ATTACHMENTS = 2 * 2**30
"""Bytes of all attachments of one frame together."""
_LENGTH = 4
_CHUNK = 256 * 2**10
STREAM_LIMIT = 2**20
"""Bytes that a `StreamReader` should hold (``limit``): with asyncio's 64 KiB a picture is slow."""


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
    log_level: str | None = None
    """The client asked for log messages of this level (one of MCP's) and above."""
    can_elicit: bool = False
    """The client's user can be asked."""


class Cancel(Message):
    """Stop a call; unknown and ended ids are ignored."""

    type: Literal["cancel"] = "cancel"
    id: int
    reason: str = ""


class Answer(Message):
    """What became of a question; what is no longer open is ignored."""

    type: Literal["answer"] = "answer"
    id: int
    """Of the call."""
    question: int
    action: Literal["accept", "decline", "cancel"] = "cancel"
    content: dict[str, Any] = Field(default_factory=dict)
    """What the user entered, as the client says it."""
    error: str | None = None
    """Why the question could not be asked: a sentence for the model; the rest is nothing then."""


class ListResources(Message):
    """Ask which resources can be read; what is gone or new meanwhile moves no other."""

    type: Literal["list_resources"] = "list_resources"
    id: int
    after: int = 0
    """Only those with a higher number."""
    limit: int
    """At most so many."""


class ReadResource(Message):
    """Ask for a resource's content."""

    type: Literal["read_resource"] = "read_resource"
    id: int
    uri: str
    most: int | None = None
    """Bytes that a client takes; None: as many as the kernel sends."""


class CallInfo(Message):
    """A call that a kernel has, of any bridge."""

    tool: str
    doing: str
    """What it does or waits for, in a few words."""


class Welcome(Message):
    """The kernel takes the conversation up."""

    type: Literal["welcome"] = "welcome"
    protocol: int = PROTOCOL_VERSION
    version: str
    tools: list[ToolInfo]
    """In the order of their definition."""
    calls: list[CallInfo] = Field(default_factory=list)
    """Those that run or wait, oldest first."""
    resources: bool = False
    """The kernel answers `ListResources` and `ReadResource`."""


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
    progress: float | None = None
    """How much is done; None: nobody can tell, but there is something to say."""
    total: float | None = None
    message: str | None = None

    @field_validator("progress", "total")
    @classmethod
    def _is_a_number(cls, value: float | None) -> float | None:
        # JSON has no NaN.
        return value if value is not None and math.isfinite(value) else None


class Log(Message):
    """A log message of a call."""

    type: Literal["log"] = "log"
    id: int
    level: str
    """One of MCP's."""
    logger: str | None = None
    text: str


class Ask(Message):
    """A question of a call to its client's user."""

    type: Literal["ask"] = "ask"
    id: int
    """Of the call."""
    question: int
    """Its number among the call's questions."""
    key: str
    """A name for it, unique among the call's open questions."""
    message: str
    form: dict[str, Any]
    """What can be entered: MCP's restricted JSON Schema of an object."""


class Withdraw(Message):
    """The call waits no more for the answer to a question."""

    type: Literal["withdraw"] = "withdraw"
    id: int
    """Of the call."""
    question: int


class Returned(Message):
    """The answer to a call. `pack` and `unpack` translate it from and to a `content.Result`."""

    type: Literal["returned"] = "returned"
    id: int
    content: list[dict[str, Any]]
    structured: Any = None
    is_error: bool = False
    meta: dict[str, Any] = Field(default_factory=dict)
    lacks: str | None = None
    """The call failed because its client has not declared this capability (MCP's name for it)."""


class ResourceInfo(Message):
    """What a kernel says about one resource."""

    number: int
    """Its place in the list: from 1, those made later have higher ones."""
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """Bytes, where known."""


class Resources(Message):
    """The resources that were asked for, in the order of their numbers."""

    type: Literal["resources"] = "resources"
    id: int
    resources: list[ResourceInfo]


class Contents(Message):
    """A resource's content, or why there is none; `pack_contents` and `unpack_contents`."""

    type: Literal["contents"] = "contents"
    id: int
    uri: str = ""
    mime_type: str = ""
    is_text: bool = False
    """The attachment is UTF-8."""
    error: str | None = None
    """A sentence for the client; there is no content then."""
    unknown: bool = False
    """The error is that there is no such resource, or none any more."""


class Goodbye(Message):
    """The kernel ends the conversation on purpose."""

    type: Literal["goodbye"] = "goodbye"
    reason: str
    """A sentence for the user: "The kernel was restarted."."""


AnyMessage: TypeAlias = (
    Hello
    | Call
    | Cancel
    | Answer
    | ListResources
    | ReadResource
    | Welcome
    | Refused
    | Tools
    | Progress
    | Log
    | Ask
    | Withdraw
    | Returned
    | Resources
    | Contents
    | Goodbye
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
_READERS: dict[str, TypeAdapter[ContentBlock]] = {
    name: TypeAdapter(block) for name, block in _BLOCKS.items()
}


def resource_prefix(kernel_id: str) -> str:
    """Return what the URIs of a kernel's resources begin with."""
    return f"{SCHEME}://{kernel_id}/"


def kernel_of(uri: str) -> str | None:
    """Return the id of the kernel whose resource a URI names; None: it is none of ours."""
    scheme, _, rest = uri.partition("://")
    kernel_id, slash, _ = rest.partition("/")
    return kernel_id if scheme == SCHEME and kernel_id and slash else None


def pack(call_id: int, result: Result) -> tuple[Returned, list[bytes]]:
    """Turn a result into its message and attachments; the bytes are not copied.

    Raises:
        TypeError: Something in the result's content is no content block.
    """
    attachments: list[bytes] = []
    content = [_pack_block(block, attachments) for block in result.content]
    message = Returned(
        id=call_id,
        content=content,
        structured=result.structured,
        is_error=result.is_error,
        meta=dict(result.meta),
    )
    return message, attachments


def _pack_block(block: ContentBlock, attachments: list[bytes]) -> dict[str, Any]:
    name = next((name for name, kind in _BLOCKS.items() if isinstance(block, kind)), None)
    if name is None:
        raise TypeError(f"A result's content holds {type(block).__name__!r}, no content block.")
    packed: dict[str, Any] = {"type": name}
    for item in fields(_BLOCKS[name]):
        value = getattr(block, item.name)
        if isinstance(value, bytes | bytearray | memoryview):
            packed[item.name] = len(attachments)
            # bytes() gives bytes back uncopied; the others may change or count in larger units.
            attachments.append(bytes(value))
        elif value is not None and value != ():
            packed[item.name] = value
    return packed


def unpack(message: Returned, attachments: Sequence[bytes]) -> Result:
    """Turn a message and its attachments back into the result.

    Raises:
        FrameError: The message does not describe content blocks.
    """
    blocks = tuple(_unpack_block(packed, attachments) for packed in message.content)
    return Result(blocks, message.structured, message.is_error, message.meta)


def _unpack_block(packed: dict[str, Any], attachments: Sequence[bytes]) -> ContentBlock:
    reader = _READERS.get(str(packed.get("type")))
    if reader is None:
        raise FrameError(f"A result holds a content block of unknown type {packed.get('type')!r}.")
    data = packed.get("data")
    if isinstance(data, int):
        if not 0 <= data < len(attachments):
            raise FrameError(f"A content block names attachment {data} of {len(attachments)}.")
        packed = packed | {"data": attachments[data]}
    elif packed["type"] == "image":  # whose type takes anything, for those who write tools
        raise FrameError("A result holds an image block without an attachment.")
    try:
        return reader.validate_python(packed)
    except ValidationError as error:
        raise FrameError(
            f"A result holds a {packed['type']} block that cannot be read: {_reason(error)}."
        ) from error


def pack_contents(request_id: int, resource: Resource) -> tuple[Contents, list[bytes]]:
    """Turn a resource into its message and attachment; bytes are not copied."""
    data = resource.data
    message = Contents(
        id=request_id,
        uri=resource.uri,
        mime_type=resource.mime_type,
        is_text=isinstance(data, str),
    )
    return message, [_clean(data).encode() if isinstance(data, str) else bytes(data)]


def unpack_contents(message: Contents, attachments: Sequence[bytes]) -> Resource:
    """Turn a message and its attachment back into the resource.

    Raises:
        FrameError: It has no attachment.
    """
    if len(attachments) != 1:
        raise FrameError(f"A resource's content came in {len(attachments)} attachments.")
    data = attachments[0].decode("utf-8", "replace") if message.is_text else attachments[0]
    return Resource(message.uri, data, message.mime_type)


def encode(message: AnyMessage, attachments: Sequence[bytes] = ()) -> list[bytes]:
    """Return the frame as a list of buffers, to be written one after the other.

    Write them without awaiting in between, so that frames of several tasks do not mix; not with
    ``writelines``, which joins (copies) them on Python 3.11.

    Raises:
        FrameError: The message is too large for a frame, or cannot be said in JSON.
    """
    header = dict(message)  # shallow: to_json walks the rest itself
    if attachments:
        header["attachments"] = [len(attachment) for attachment in attachments]
        _check_attachments(header["attachments"])
    try:
        body = _to_json(header)
    except ValueError:
        body = _to_json_cleaned(header)
    if len(body) > MAX_HEADER:
        raise FrameError(
            f"A {message.type!r} message of {len(body)} bytes without its attachments; "
            f"at most {MAX_HEADER} are allowed."
        )
    return [len(body).to_bytes(_LENGTH, "big") + body, *attachments]


def _to_json(value: Any) -> bytes:
    return to_json(value, inf_nan_mode="null", bytes_mode="base64", serialize_unknown=True)


def _to_json_cleaned(header: dict[str, Any]) -> bytes:
    try:
        return _to_json(_clean(header))
    except (ValueError, RecursionError) as error:
        raise FrameError(
            f"A {header['type']!r} message cannot be sent as JSON: {error}."
        ) from error


def _clean(value: Any) -> Any:
    """Return the value with its lone surrogates replaced; a pair becomes the character it means."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, BaseModel):
        return _clean(dict(value))
    if isinstance(value, dict):
        return {_clean(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item) for item in value]
    return value


async def read_message(reader: asyncio.StreamReader) -> tuple[AnyMessage, list[bytes]] | None:
    """Read one frame; None at the end of the stream, also when it ends within a frame.

    Raises:
        FrameError: The bytes are no frame of this protocol; the stream cannot be used further.
    """
    try:
        length = int.from_bytes(await reader.readexactly(_LENGTH), "big")
        if not 0 < length <= MAX_HEADER:
            raise FrameError(
                f"A frame's header of {length} bytes; at most {MAX_HEADER} are allowed."
            )
        message, lengths = _parse(await reader.readexactly(length))
        return message, [await _read_attachment(reader, size) for size in lengths]
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _parse(body: bytes) -> tuple[AnyMessage, list[int]]:
    header = _from_json(body)
    if not isinstance(header, dict):
        raise FrameError("A frame's header is no JSON object.")
    lengths = header.pop("attachments", [])
    _check_attachments(lengths)
    try:
        return _ANY_MESSAGE.validate_python(header), lengths
    except ValidationError as error:
        raise FrameError(f"A frame's header is no message: {_reason(error)}.") from error


def _from_json(body: bytes) -> Any:
    try:
        return from_json(body)
    except ValueError as error:
        reason = error
    # to_json writes what from_json refuses: nesting beyond 200, integers of over 4300 digits. An
    # author's odd value must not end the link, so such a header gets a second, more patient reader.
    try:
        return json.loads(body, parse_int=_parse_int)
    except (ValueError, RecursionError):
        raise FrameError(f"A frame's header is no JSON: {reason}.") from None


def _parse_int(digits: str) -> int | None:
    try:
        return int(digits)
    except ValueError:
        return None


def _check_attachments(lengths: object) -> None:
    valid = isinstance(lengths, list) and all(
        isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in lengths
    )
    if not valid:
        raise FrameError("A frame's list of attachments holds something else than lengths.")
    assert isinstance(lengths, list)
    if sum(lengths) > MAX_ATTACHMENTS:
        raise FrameError(
            f"Attachments of {sum(lengths)} bytes; at most {MAX_ATTACHMENTS} are allowed."
        )


def _reason(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


async def _read_attachment(reader: asyncio.StreamReader, size: int) -> bytes:
    # readexactly would hold the data twice: once in the reader's buffer, once in what it returns;
    # so would a list of chunks. What BytesIO has grown to is given out without a copy.
    read = io.BytesIO()
    missing = size
    while missing:
        chunk = await reader.read(min(missing, _CHUNK))
        if not chunk:
            raise asyncio.IncompleteReadError(b"", missing)
        missing -= read.write(chunk)
    return read.getvalue()
