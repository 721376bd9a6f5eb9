"""Messages <-> the bytes of a connection.

Runs on both sides, on the event loop that owns the connection. A frame that cannot be read ends the
stream; a message that cannot be encoded is refused before any of its bytes are written.
`FrameProtocol` hands over each frame as soon as its last byte has arrived, without waking a task:
waking one would take longer than reading the frame. All else here is pure.
"""

import asyncio
import io
import json
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, TypeAlias, cast, get_args

from msgspec import MsgspecError, Struct, ValidationError, convert, structs
from msgspec.json import Decoder, Encoder

from mcp_notebook.errors import FrameError, FrameTooLarge
from mcp_notebook.lean_json import from_json, to_json
from mcp_notebook.wire import messages

MAX_HEADER = 64 * 2**20
"""Bytes. A header carries arguments and texts; both are bounded far below this elsewhere."""
MAX_ATTACHMENTS = 2 * 2**30
"""Bytes of all attachments of one frame together."""
_MAX_REASON = 300
"""Characters of a reason, which may repeat what the other side has sent."""
_LENGTH = 4
SEND_BUFFER = 2**20
"""Bytes that a socket should take at once (``SO_SNDBUF``), as far as the system allows: with Linux'
208 KiB a picture is sent piece by piece, and each piece waits until the other side has read."""
_Numbers: TypeAlias = Literal["constants", "null"]
"""How infinity and NaN are written."""
_KEPT = ("call", "answer")
"""Messages whose infinite numbers are kept, since the argument check rejects them; others have null
in their place."""
_ENCODER = Encoder()
_DECODER = Decoder(messages.AnyMessage)
_KINDS: dict[str, type[messages.AnyMessage]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(messages.AnyMessage)
}
"""The class of each type of message."""

Frame: TypeAlias = tuple[messages.AnyMessage, list[bytes]]
"""A message and its attachments."""


def encode(message: messages.AnyMessage, attachments: Sequence[bytes] = ()) -> list[bytes]:
    """Return the frame as a list of buffers, to be written one after the other.

    Write them without awaiting in between, so that frames of several tasks do not mix; not with
    ``writelines``, which joins (copies) them on Python 3.11.

    Raises:
        FrameError: The message is too large for a frame, or cannot be represented in JSON.
    """
    kind = message.type
    if not attachments and (quick := _encode_plain(message)) is not None:
        return [len(quick).to_bytes(_LENGTH, "big") + quick]
    header = {"type": kind, **structs.asdict(message)}  # shallow: `_to_json` walks the rest
    if attachments:
        header["attachments"] = [len(attachment) for attachment in attachments]
        _check_attachments(header["attachments"])
    numbers: _Numbers = "constants" if kind in _KEPT else "null"
    try:
        body = _to_json(header, numbers)
    except ValueError:
        body = _to_json_cleaned(header, numbers)
    if len(body) > MAX_HEADER:
        raise FrameTooLarge(kind, len(body), MAX_HEADER)
    return [len(body).to_bytes(_LENGTH, "big") + body, *attachments]


def _encode_plain(message: messages.AnyMessage) -> bytes | None:
    """Return the JSON of a message that has nothing to replace, and is not large; else None."""
    try:
        body = _ENCODER.encode(message)
    except (TypeError, ValueError, RecursionError):
        return None
    may_lose = message.type in _KEPT and body.count(b"null") != structs.astuple(message).count(None)
    return None if may_lose or len(body) > MAX_HEADER else body


def _to_json(value: Any, numbers: _Numbers) -> bytes:
    return to_json(
        value,
        inf_nan_mode=numbers,
        bytes_mode="base64",
        serialize_unknown=True,  # a circular reference becomes "..."
        fallback=_make_serializable,
    )


def _make_serializable(value: Any) -> Any:
    return structs.asdict(value) if isinstance(value, Struct) else str(value)


def _to_json_cleaned(header: dict[str, Any], numbers: _Numbers) -> bytes:
    try:
        return _to_json(_clean(header), numbers)
    except (ValueError, RecursionError) as error:
        raise FrameError(
            f"A {header['type']!r} message cannot be sent as JSON: {error}."
        ) from error


def replace_surrogates(text: str) -> str:
    """Return the text with each lone surrogate as U+FFFD, and each pair as its character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _clean(value: Any) -> Any:
    """Return a value whose texts have no lone surrogates."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, Struct):
        return _clean(structs.asdict(value))
    if isinstance(value, dict):
        return {_clean(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item) for item in value]
    return value


class FrameParser:
    """Assembles frames from the pieces of a stream."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.missing = _LENGTH
        """Bytes that the current part of the frame still lacks, at least one."""
        self._part: io.BytesIO | None = None
        """The pieces of the current part, if it arrives in several."""
        self._has_length = False
        self._message: messages.AnyMessage | None = None
        self._lengths: list[int] = []
        self._attachments: list[bytes] = []

    def feed(self, piece: bytes | memoryview) -> Frame | None:
        """Take a piece of the stream; return the frame that ends with it, if one does.

        Args:
            piece: At most `missing` bytes.

        Raises:
            FrameError: The bytes are not a frame; the stream cannot be used any further.
        """
        self.missing -= len(piece)
        if self._part is None and not self.missing:
            part = bytes(piece)
        else:
            # `getvalue` does not copy, so that a part takes its size in memory only once.
            self._part = self._part or io.BytesIO()
            self._part.write(piece)
            part = b"" if self.missing else self._part.getvalue()
        while not self.missing:
            self._part = None
            if not self._has_length:
                self._take_length(part)
            elif (frame := self._take_part(part)) is not None:
                return frame
            part = b""
        return None

    def _take_part(self, part: bytes) -> Frame | None:
        if self._message is None:
            self._message, self._lengths = _parse(part)
        else:
            self._attachments.append(part)
        if len(self._attachments) < len(self._lengths):
            self.missing = self._lengths[len(self._attachments)]
            return None
        frame = self._message, self._attachments
        self._begin()
        return frame

    def _take_length(self, part: bytes) -> None:
        length = int.from_bytes(part, "big")
        if length > MAX_HEADER:
            raise FrameError(
                f"A frame's header has {length} bytes; at most {MAX_HEADER} are allowed."
            )
        self._has_length, self.missing = True, length


def _parse(body: bytes) -> tuple[messages.AnyMessage, list[int]]:
    if b'"attachments"' not in body:
        try:
            return _DECODER.decode(body), []
        except (MsgspecError, RecursionError):
            pass  # it is read as below, or refused with the reason
    try:
        header = _from_json(body)
    except ValueError as error:
        raise FrameError(f"A frame's header is not JSON: {error}.") from None
    if not isinstance(header, dict):
        raise FrameError("A frame's header is not a JSON object.")
    lengths: list[int] = []
    if "attachments" in header:
        lengths = header.pop("attachments")
        _check_attachments(lengths)
    kind = _KINDS.get(str(header.get("type")))
    if kind is None:
        raise FrameError(f"A frame's header has the unknown type {header.get('type')!r:.80}.")
    try:
        return convert(header, kind), lengths
    except ValidationError as error:
        raise FrameError(f"A frame's header is not a message: {describe_error(error)}.") from error


def _from_json(body: bytes) -> Any:
    try:
        return from_json(body)
    except ValueError as error:
        reason = error
    # to_json writes values that from_json refuses: nesting beyond 200 levels, integers of over 4300
    # digits. An author's odd value must not end the link, so `json` parses such a header. `json`
    # accepts lone surrogates, which could not be sent on to a client.
    try:
        return _clean(json.loads(body, parse_int=_parse_int))
    except (ValueError, RecursionError):
        raise reason from None


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
        raise FrameError("A frame's list of attachments contains something other than lengths.")
    assert isinstance(lengths, list)
    if sum(lengths) > MAX_ATTACHMENTS:
        raise FrameError(
            f"A frame has {sum(lengths)} bytes of attachments; at most {MAX_ATTACHMENTS} are "
            "allowed."
        )


def describe_error(error: Exception) -> str:
    """Say where and how a message or block fails to validate, within `_MAX_REASON` characters."""
    text = str(error)
    return text if len(text) <= _MAX_REASON else f"{text[: _MAX_REASON - 1]}…"


class FrameProtocol(asyncio.Protocol):
    """Reads one connection.

    Args:
        converse: Handles the connection, in a task of its own; None if the caller who made the
            connection does.
    """

    transport: asyncio.Transport

    def __init__(
        self, converse: Callable[["FrameProtocol"], Coroutine[Any, Any, None]] | None = None
    ) -> None:
        self._converse = converse
        self._parser = FrameParser()
        self._frames: deque[Frame] = deque()
        """Frames that have arrived and have not been read."""
        self._take: Callable[[messages.AnyMessage, list[bytes]], None] | None = None
        self.is_over = False
        """Whether the stream has ended."""
        self._error: Exception | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def read(self) -> Frame | None:
        """Wait for one frame, before `listen`; None at the end of the stream.

        Raises:
            FrameError: The bytes are not a frame; the connection cannot be used any further.
            OSError: The connection failed for another reason than that the other side is gone.
        """
        while not self._frames and not self.is_over:
            self._changed.clear()
            await self._changed.wait()
        if self._frames:
            return self._frames.popleft()
        if self._error is not None:
            raise self._error
        return None

    async def listen(self, take: Callable[[messages.AnyMessage, list[bytes]], None]) -> None:
        """Hand over each frame that arrives, until the stream ends.

        Args:
            take: Gets a message and its attachments, in a callback of the loop.

        Raises:
            FrameError: The bytes are not a frame; the connection cannot be used any further.
            OSError: The connection failed for another reason than that the other side is gone.
            Exception: `take` raised it; no more frames are handed over.
        """
        while self._frames:
            take(*self._frames.popleft())
        self._take = take
        try:
            while not self.is_over:
                self._changed.clear()
                await self._changed.wait()
        finally:
            self._take = None
        if self._error is not None:
            raise self._error

    def send(self, message: messages.AnyMessage, attachments: Sequence[bytes] = ()) -> None:
        """Send a message; does nothing if the other side is gone, as the reader will notice.

        Raises:
            FrameError: The message is too large for a frame, or cannot be represented in JSON.
        """
        for buffer in encode(message, attachments):
            # uvloop's transports raise a RuntimeError once they are closed.
            if self.is_over or self.transport.is_closing():
                return
            self.transport.write(buffer)

    # -- what the loop calls -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the conversation."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are not derived from it
        if self._converse is not None:
            self._task = asyncio.get_running_loop().create_task(self._converse(self))

    def data_received(self, data: bytes) -> None:
        """Take a piece of the stream."""
        view, size, start = memoryview(data), len(data), 0
        try:
            while start < size and not self.is_over:
                end = start + self._parser.missing
                frame = self._parser.feed(view[start:end])
                start = end
                if frame is None:
                    continue
                if self._take is not None:
                    self._take(*frame)
                else:
                    self._frames.append(frame)
                    self._changed.set()
        except Exception as error:  # noqa: BLE001 - raised by `listen` or `read`
            self._end(error)

    def eof_received(self) -> bool:
        """Note that no more data will arrive; pending writes still go out."""
        self._end(None)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection is gone; not an error if the other side closed it."""
        self._end(None if isinstance(exc, ConnectionError) else exc)

    def _end(self, error: Exception | None) -> None:
        if not self.is_over:
            self.is_over, self._error = True, error
            self._changed.set()
