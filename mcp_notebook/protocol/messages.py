"""The messages of JSON-RPC 2.0 as MCP uses it: read, checked and written.

Pure. https://www.jsonrpc.org/specification; MCP has no batches since 2025-06-18, and those of
2025-03-26 are refused: one HTTP request with a thousand calls would count as one.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from mcp_notebook.lean_json import from_json, to_json
from mcp_notebook.protocol.errors import INVALID_REQUEST, PARSE_ERROR, ProtocolError

RequestId: TypeAlias = int | str
Params: TypeAlias = Mapping[str, Any]
MAX_ID = 1_000
"""Maximum characters of an id that is a text, and maximum bits of a number."""
_NO_MESSAGE = "This is not a JSON-RPC 2.0 message."
_MAX_REFUSED = 100
"""Maximum requests of a batch that are answered when it is refused."""
_BATCH = "Batches are not supported: send one message at a time."
_ODD_ID = f"A request's id must be a string of at most {MAX_ID:,} characters, or an integer."


class Request(Struct, frozen=True):
    """A request, which gets one answer."""

    id: RequestId
    method: str
    params: Params | None = None


class Notification(Struct, frozen=True):
    """A message that gets no answer."""

    method: str
    params: Params | None = None


class Answer(Struct, frozen=True):
    """The answer to a request of ours."""

    id: RequestId | None
    result: Params | None = None
    """None: it is an error."""
    error: Params | None = None


Message: TypeAlias = Request | Notification | Answer


class InvalidMessage(ProtocolError):
    """A text is not a message.

    Args:
        code: The error's code.
        message: The problem.
        ids: The ids of the requests in it, which wait for an answer; None for an unknown one.
    """

    def __init__(self, code: int, message: str, ids: Sequence[RequestId | None] = (None,)) -> None:
        super().__init__(code, message)
        self.ids = ids


def read_message(text: bytes) -> Message:
    """Return the message in a JSON text.

    Raises:
        InvalidMessage: The text is not one valid message.
    """
    # 1. It is JSON. Huge integers, deep nesting, lone surrogates and NaN are not.
    try:
        content = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise _refuse_text(text, str(error)) from None
    # 2. It is one object of version 2.0.
    if not isinstance(content, dict):
        message = _BATCH if isinstance(content, list) else _NO_MESSAGE
        raise InvalidMessage(INVALID_REQUEST, message, _list_ids(content))
    if content.get("jsonrpc") != "2.0":
        raise InvalidMessage(INVALID_REQUEST, _NO_MESSAGE, _list_ids(content))
    # 3. With a method it is a request, or without an id a notification; else it is an answer.
    if "method" not in content:
        return _read_answer(content)
    method, params = content["method"], content.get("params")
    if not isinstance(method, str) or not (params is None or isinstance(params, dict)):
        raise InvalidMessage(INVALID_REQUEST, _NO_MESSAGE, _list_ids(content))
    if "id" not in content:
        return Notification(method, params)
    if not is_id(content["id"]):
        raise InvalidMessage(INVALID_REQUEST, _ODD_ID)
    return Request(content["id"], method, params)


def is_id(value: Any) -> bool:
    """Return whether a value can be a request's id, which is kept and sent back."""
    if isinstance(value, str):
        return len(value) <= MAX_ID
    return type(value) is int and value.bit_length() <= MAX_ID


def _read_answer(content: dict[str, Any]) -> Answer:
    answer_id, result, error = content.get("id"), content.get("result"), content.get("error")
    if is_id(answer_id) and isinstance(result, dict):
        return Answer(answer_id, result)
    if (
        (answer_id is None or is_id(answer_id))
        and isinstance(error, dict)
        and type(error.get("code")) is int
        and isinstance(error.get("message"), str)
    ):
        return Answer(answer_id, error=error)
    raise InvalidMessage(INVALID_REQUEST, _NO_MESSAGE, _list_ids(content))


def _refuse_text(text: bytes, problem: str) -> InvalidMessage:
    """Return the error for a text that is not JSON, or no JSON that we read."""
    try:
        content = json.loads(text.decode("utf-8", "replace"))  # allows lone surrogates
    except (ValueError, RecursionError):
        content = None
    return InvalidMessage(PARSE_ERROR, f"{problem}.", _list_ids(content))


def _list_ids(content: Any) -> list[RequestId | None]:
    """Return the ids of the requests in a refused message; None for one without a usable id."""
    items = content if isinstance(content, list) else [content]
    requests = [item for item in items if isinstance(item, dict) and "method" in item]
    return [_find_id(request) for request in requests[:_MAX_REFUSED]] or [None]


def _find_id(request: dict[str, Any]) -> RequestId | None:
    request_id = request.get("id")
    if isinstance(request_id, str):
        is_safe = request_id.isprintable()  # a lone surrogate is not
        return request_id if is_safe and is_id(request_id) else None
    return request_id if is_id(request_id) else None


def coerce_id(request_id: RequestId) -> RequestId:
    """Normalize an id for comparison: some clients send 7 back as "7"."""
    if isinstance(request_id, str) and request_id.removeprefix("-").isdecimal():
        try:
            return int(request_id)
        except ValueError:  # too many digits
            pass
    return request_id


def write_request(request_id: RequestId, method: str, params: Params) -> bytes:
    """Return a request as JSON."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return to_json(message)


def write_notification(method: str, params: Params | None = None) -> bytes:
    """Return a notification as JSON."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    message |= {} if params is None else {"params": params}
    return to_json(message)
