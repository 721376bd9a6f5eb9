"""JSON-RPC messages, parsed as far as forwarding needs.

Pure. Runs on the event loop of `mcp-notebook connect`. A message keeps its original bytes, so that
members that are unknown here are forwarded unchanged.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from mcp_notebook.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from mcp_notebook.protocol.headers import list_headers
from mcp_notebook.protocol.versions import PROTOCOL_VERSION_KEY

JsonObject = Mapping[str, Any]
RequestId = int | str
_NO_MESSAGE = "This is not a JSON-RPC 2.0 message."


class InvalidMessage(Exception):
    """A line of the client is not a message.

    Args:
        code: The code of the JSON-RPC error to answer with.
        reason: The problem.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True)
class Message:
    """One message."""

    body: bytes
    """Its JSON, on one line."""
    content: JsonObject
    """The same, parsed."""

    @property
    def method(self) -> str:
        """The method of a request or notification, "" for an answer."""
        return str(self.content.get("method", ""))

    @property
    def id(self) -> RequestId | None:
        """The id of a request or answer."""
        return self.content.get("id")

    @property
    def is_request(self) -> bool:
        """Whether it is a request."""
        return "method" in self.content and self.id is not None

    @property
    def is_answer(self) -> bool:
        """Whether it is the answer to a request."""
        return "method" not in self.content

    def is_answer_to(self, request: "Message") -> bool:
        """Whether it is the answer to this request; errors may have no id."""
        if not self.is_answer:
            return False
        return self.id == request.id or (self.id is None and "error" in self.content)

    @property
    def params(self) -> JsonObject:
        """The parameters, {} if there are none."""
        return as_object(self.content.get("params"))

    @property
    def result(self) -> JsonObject:
        """The result in an answer, {} if it is an error."""
        return as_object(self.content.get("result"))

    @property
    def error_code(self) -> Any:
        """The code in an answer that is an error, None in others."""
        return as_object(self.content.get("error")).get("code")

    @property
    def progress_token(self) -> str | int | None:
        """The token with which the client asks for its progress."""
        token = as_object(self.params.get("_meta")).get("progressToken")
        return token if isinstance(token, str | int) else None

    @property
    def headers(self) -> dict[str, str]:
        """The HTTP headers that repeat its version, method and name; {} before 2026-07-28."""
        return list_headers(self.method, self.params)

    @property
    def version(self) -> str | None:
        """The protocol version in its ``_meta``, which all requests have since 2026-07-28."""
        version = as_object(self.params.get("_meta")).get(PROTOCOL_VERSION_KEY)
        return version if isinstance(version, str) else None


def as_object(value: Any) -> JsonObject:
    """Return a value if it is a JSON object, {} for anything else."""
    return value if isinstance(value, Mapping) else {}


def read_line(line: bytes, max_bytes: int) -> Message:
    """Return the message in a line of the client.

    Args:
        line: The line; b"" for one that is too long.
        max_bytes: Size limit of a line.

    Raises:
        InvalidMessage: It is not a message.
    """
    if not line:
        reason = f"A message can have at most {max_bytes:,} bytes."
        raise InvalidMessage(INVALID_REQUEST, reason)
    try:
        content = from_json(line)
    except ValueError as error:
        raise InvalidMessage(PARSE_ERROR, f"This is not JSON: {error}.") from None
    if isinstance(content, list):
        reason = "Batches are not supported: send one message per line."
        raise InvalidMessage(INVALID_REQUEST, reason)
    if not isinstance(content, dict) or not {"method", "result", "error"} & content.keys():
        raise InvalidMessage(INVALID_REQUEST, _NO_MESSAGE)
    if not isinstance(content.get("method", ""), str) or not _may_be_id(content.get("id")):
        raise InvalidMessage(INVALID_REQUEST, _NO_MESSAGE)
    return Message(line, content)


def read_body(body: bytes) -> Message | None:
    """Return the message in a server's data, None if it is not a message."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or "jsonrpc" not in content:
        return None
    if not _may_be_id(content.get("id")):
        return None
    if b"\n" in body or b"\r" in body:  # on stdio, a message is one line
        body = write_json(content)
    return Message(body, content)


def _may_be_id(value: Any) -> bool:
    return value is None or (isinstance(value, str | int) and not isinstance(value, bool))


def replace_id(message: Message, request_id: RequestId | None) -> Message:
    """Return an answer with the id of its request; servers may not know the id."""
    if message.id == request_id:
        return message
    return make_message({**message.content, "id": request_id})


def make_message(content: JsonObject) -> Message:
    """Return a message of our own."""
    content = {"jsonrpc": "2.0", **content}
    return Message(write_json(content), content)


def make_progress(token: str | int, step: int, text: str) -> Message:
    """Return the notification about a step before a request is sent to the server.

    Progress must increase (MCP), and the server's own, which begins at 0, may follow: the steps 1,
    2, 3 and so on are -1, -1/2, -1/3 ...
    """
    params = {"progressToken": token, "progress": -1 / step, "message": text}
    return make_message({"method": "notifications/progress", "params": params})


def make_error(request_id: RequestId | None, reason: str, code: int = INTERNAL_ERROR) -> Message:
    """Return the answer to a request that failed."""
    return make_message({"id": request_id, "error": {"code": code, "message": reason}})


def write_json(content: JsonObject) -> bytes:
    """Return JSON on one line."""
    # Escaped: lone surrogates cannot be written as UTF-8.
    return json.dumps(content, separators=(",", ":")).encode()
