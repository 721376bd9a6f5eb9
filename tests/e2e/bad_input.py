"""Bad input from a seed: JSON of every kind, messages with a fault, bytes with a fault.

hypothesis chooses the seeds, so that a run can be repeated; from a seed come many cases at once,
because one at a time would take hypothesis longer than the bridge.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import mcp_types as types
from bridges import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from jsonschema import Draft202012Validator
from pydantic_core import from_json

TEXTS = (
    "",
    "a",
    "ab",
    "1",
    "null",
    "[1]",
    '{"city": "Oslo"}',
    "__proto__",
    "$ref",
    "ä€\U0001f600",
    "\u202e\u2066txt.exe",
    "\x00\x1b]0;title\x07\x9b31m",
    "\ud800",
    "../../etc/passwd",
    "%s%n{0}${x}",
    "2024-02-30",
    "x" * 300,
)
NUMBERS = (0, 1, -1, 9, 10, 2**31, 2**53 + 1, 2**64, -(10**30), 10**400, 0.5, -0.0, 1e308, 5e-324)
RAW_NUMBERS = ("NaN", "-Infinity", "1e999", "-0", "1.0", "9" * 5000, "01", "1.", "0x10", "+1")
"""Numbers as JSON writes them, or as it does not."""
_RAW = "@raw:"


def make_json(random: Random, depth: int = 3) -> Any:
    """Return a JSON value of any kind; some of its numbers are `RAW_NUMBERS`."""
    kind = random.randrange(10 if depth else 7)
    if kind < 2:
        return random.choice(TEXTS)
    if kind < 4:
        return random.choice(NUMBERS)
    if kind == 4:
        return f"{_RAW}{random.choice(RAW_NUMBERS)}" if random.random() < 0.2 else None
    if kind < 7:
        return random.choice((True, False, None, random.randint(-20, 20)))
    if kind == 7:
        return [make_json(random, depth - 1) for _ in range(random.randrange(5))]
    return {
        random.choice((*TEXTS, "id", "method", "name", "type", "_meta")): make_json(
            random, depth - 1
        )
        for _ in range(random.randrange(5))
    }


def dump(random: Random, value: Any) -> bytes:
    """Return the JSON of a value, in one of the ways in which it can be written."""
    has_surrogates = "\\ud800" in (text := json.dumps(value))
    if not has_surrogates and random.random() < 0.5:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for raw in RAW_NUMBERS:
        text = text.replace(f'"{_RAW}{raw}"', raw)
    return text.encode()


def spoil(random: Random, value: Any) -> Any:
    """Return a copy of a JSON object in which something is missing, more or of another kind."""
    value = copy.deepcopy(value)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        holder = random.choice(_list_holders(value))
        key = random.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        match random.randrange(4):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[random.choice(TEXTS)] = make_json(random)
            case _:
                holder[key] = make_json(random)
        if not value:
            break
    return value


def _list_holders(value: Any) -> list[Any]:
    """Return the objects and lists within a value that hold something."""
    found = []
    if isinstance(value, dict | list) and value:
        found.append(value)
        for item in value.values() if isinstance(value, dict) else value:
            found += _list_holders(item)
    return found


def spoil_bytes(random: Random, data: bytes) -> bytes:
    """Return bytes with some changed, missing, doubled or put in."""
    for _ in range(random.choice((1, 1, 2, 5))):
        start = random.randrange(len(data) + 1)
        end = min(start + random.choice((1, 1, 2, 10, 1000)), len(data))
        match random.randrange(5):
            case 0:
                data = data[:start] + data[end:]
            case 1:
                data = data[:end] + data[start:]
            case 2:
                data = data[:start] + random.randbytes(end - start) + data[end:]
            case 3:
                data = data[:start] + random.choice(_BITS) + data[start:]
            case 4:
                data = data[:start]
    return data


_BITS = (b"\0", b"\xff", b"\xef\xbb\xbf", b"\xc3", b'"', b"\\", b"{", b"[" * 300, b"}", b",", b"\r")


MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
ARGUMENTS = {
    "plain": {"count": 3, "name": "abc"},
    "nested": {"place": {"city": "Oslo", "height": 1.5}, "tags": ["a"], "table": {"x": 1}},
    "loose": {"value": [1, {"a": None}], "flag": True, "when": "2024-02-29"},
}
"""Of the tools in `TOOLS`; right as they are."""
_OTHER_REQUESTS = (
    ("ping", {}),
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "notebook://a/1"}),
    ("prompts/list", {}),
    ("logging/setLevel", {"level": "info"}),
    ("completion/complete", {}),
    ("server/discover", {}),
    ("nobody/knows", {"a": 1}),
    ("notifications/progress", {"progressToken": 1, "progress": 1}),
    ("notifications/cancelled", {"requestId": "none"}),
)
TOOLS = '''%%mcp_tool
import json
from datetime import date
from typing import Annotated, Any, Literal
from pydantic import BaseModel, Field
from pydantic_core import to_jsonable_python

class Place(BaseModel):
    city: Annotated[str, Field(min_length=2)]
    height: float = 0

def _note(tool, **arguments):
    with open("arrived.jsonl", "a") as file:
        print(json.dumps([tool, to_jsonable_python(arguments)]), file=file)
    return "ran"

def plain(count: Annotated[int, Field(ge=0, le=9)],
          name: Annotated[str, Field(pattern="^[a-z]+$", max_length=5)] = "a") -> str:
    """Take a number and a name."""
    return _note("plain", count=count, name=name)

def nested(place: Place, tags: Annotated[list[Literal["a", "b"]], Field(max_length=3)] = (),
           table: dict[str, float] | None = None) -> str:
    """Take objects and lists."""
    return _note("nested", place=place, tags=list(tags), table=table)

def loose(value: Any, flag: bool = False, when: date | None = None) -> str:
    """Take anything."""
    return _note("loose", value=value, flag=flag, when=when)
'''
"""A cell whose tools note the arguments that they are called with."""


def make_message(random: Random, request_id: str) -> bytes:
    """Return a message of a client, most likely one with a fault."""
    message = _make_request(random, request_id)
    match random.randrange(6):
        case 0 if "arguments" in message["params"]:
            message["params"]["arguments"] = spoil(random, message["params"]["arguments"])
        case 1 | 2:
            message = spoil(random, message)
        case 3:
            return spoil_bytes(random, dump(random, message))
        case 4:
            return make_noise(random)
        case 5:
            return dump(random, make_json(random))
    return dump(random, message)


def _make_request(random: Random, request_id: str) -> dict[str, Any]:
    if random.random() < 0.6:
        tool = random.choice(list(ARGUMENTS))
        method, params = "tools/call", {"name": tool, "arguments": ARGUMENTS[tool]}
    else:
        method, params = random.choice(_OTHER_REQUESTS)
    if random.random() < 0.4:
        params = {**params, "_meta": MODERN}
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": dict(params)}


def make_noise(random: Random) -> bytes:
    """Return bytes that mean nothing."""
    return random.randbytes(random.choice((1, 3, 20, 300)))


_TOOL = {
    "name": "top",
    "title": "Top",
    "description": "The first ones.",
    "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    "output_schema": {"type": "object"},
    "annotations": {"title": "Top", "readOnlyHint": True},
    "icons": [{"src": "data:image/png;base64,AAAA", "mimeType": "image/png", "sizes": ["8x8"]}],
    "meta": {"a/b": 1},
}
_TOOLS = {"missing": {"gone": {"reason": "It was deleted.", "at": 1.5, "new_name": "top"}}}
_GOOD_TOOL = {"name": "good", "input_schema": {"type": "object"}}
WELCOME = {
    "type": "welcome",
    "protocol": 1,
    "version": "0",
    "tools": [_GOOD_TOOL],
    **_TOOLS,
}
_NEWS = (
    {"type": "progress", "progress": 0.5, "total": 2, "message": "Half."},
    {"type": "log", "level": "info", "logger": "a", "text": "It began."},
    {"type": "ask", "question": 1, "key": "k", "message": "Which?", "form": {"type": "object"}},
    {"type": "withdraw", "question": 1},
)
_NOTES = {"audience": ["user"], "priority": 0.5, "last_modified": "2024-12-31T00:00:00Z"}
RETURNED = {
    "type": "returned",
    "content": [
        {"type": "text", "text": "one", **_NOTES},
        {"type": "image", "data": 0, "mime_type": "image/png"},
        {"type": "audio", "data": 0, "mime_type": "audio/wav"},
        {"type": "resource", "uri": "file:///a", "data": 0, "mime_type": "a/b"},
        {"type": "resource_link", "uri": "file:///b", "name": "b", "title": "B", "size": 3},
    ],
    "structured": {"a": [1.5, None, "x"]},
    "is_error": False,
    "meta": {"a/b": 1},
    "attachments": [3],
}
RESOURCES = {
    "type": "resources",
    "resources": [{"number": 1, "uri": "notebook://a/1", "name": "a", "size": 1, "title": "A"}],
}
CONTENTS = {"type": "contents", "uri": "notebook://a/1", "mime_type": "a/b", "attachments": [3]}


def _make_tools(random: Random) -> list[Any]:
    """Return what a kernel may say of its tools: a good one, and others."""
    others = [spoil(random, _TOOL) for _ in range(random.randrange(4))]
    return [*others, _GOOD_TOOL]


def make_news(random: Random, call_id: int) -> list[bytes]:
    """Return the frames of a kernel about a call up to its result, with faults."""
    news = [random.choice(_NEWS) for _ in range(random.randrange(3))]
    if random.random() < 0.3:
        news.append({"type": "tools", "tools": _make_tools(random), **_TOOLS})
    news.append(RETURNED)
    return [make_kernel_frame(random, message, call_id) for message in news]


def make_kernel_frame(random: Random, message: dict[str, Any], number: int) -> bytes:
    """Return a frame of a kernel with a message in which something is odd."""
    header = {**spoil(random, message), "id": number}
    body = dump(random, header)
    return len(body).to_bytes(4, "big") + body + b"abc" * ("attachments" in message)


# -- what the answers have to be -------------------------------------------------------------------

RAN, FAILED = "ran", "failed"
"""Outcomes besides the codes of errors: a request that was done, a call that says why it failed."""
ANY_ID = object()
"""The id of the answer to what cannot be read: none, or one that could be read all the same."""
_NO_SUCH_RESOURCE = -32002
ANY_OUTCOME = {
    RAN,
    FAILED,
    INVALID_REQUEST,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    _NO_SUCH_RESOURCE,
    types.UNSUPPORTED_PROTOCOL_VERSION,
    types.MISSING_REQUIRED_CLIENT_CAPABILITY,
}
MAX_ID = 1_000
"""Characters of an id that is a text, and bits of a number, that a client may use."""
_METHODS = {method for method, _ in _OTHER_REQUESTS} - {"nobody/knows"}


def expect_answers(
    line: bytes, schemas: Mapping[str, Draft202012Validator], era: str
) -> Iterator[tuple[Any, set[int | str]]]:
    """Yield the answers that a line must be given: the id, and any one of these outcomes.

    Args:
        line: What a client sends.
        schemas: The input schemas of the tools.
        era: Whether the connection began with a "handshake" or is "modern".
    """
    if not line.strip():
        return
    try:
        value = from_json(line, allow_inf_nan=False)
    except ValueError:
        yield ANY_ID, {PARSE_ERROR}
        return
    if isinstance(value, list):
        requests = [item for item in value if isinstance(item, dict) and "method" in item]
        for request in requests or [{}]:
            yield _read_id(request), {INVALID_REQUEST}
    elif not isinstance(value, dict) or not _is_message(value):
        is_request = isinstance(value, dict) and "method" in value
        yield _read_id(value) if is_request else None, {INVALID_REQUEST}
    elif "method" in value and "id" in value:
        if _is_id(value["id"]):
            has_meta = "_meta" in (value.get("params") or {})
            # What is said there, and where it has to be, depends on the era.
            is_clear = era == "handshake" and not has_meta
            yield value["id"], _expect_outcomes(value, schemas) if is_clear else ANY_OUTCOME
        else:
            yield None, {INVALID_REQUEST}


def _is_message(value: Mapping[str, Any]) -> bool:
    """Return whether an object is a message of JSON-RPC, but for the kind of its id."""
    if value.get("jsonrpc") != "2.0":
        return False
    params = value.get("params")
    if isinstance(value.get("method"), str) and (params is None or isinstance(params, dict)):
        return True
    error = value.get("error")
    if isinstance(error, dict) and "id" in value:
        return isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
    return isinstance(value.get("result"), dict) and _is_id(value.get("id"))


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_ID
    return type(value) is int and value.bit_length() <= MAX_ID


def _read_id(value: Mapping[str, Any]) -> Any:
    """Return a request's id, as far as it can be sent back."""
    request_id = value.get("id")
    is_clean = not isinstance(request_id, str) or request_id.isprintable()
    return request_id if _is_id(request_id) and is_clean else None


def _expect_outcomes(
    request: Mapping[str, Any], schemas: Mapping[str, Draft202012Validator]
) -> set[int | str]:
    """Return the outcomes that a request may have."""
    method, params = request["method"], request.get("params") or {}
    if method == "tools/call":
        return _expect_outcomes_of_call(params, schemas)
    if method not in _METHODS:
        return {METHOD_NOT_FOUND}
    return {RAN, INVALID_PARAMS, METHOD_NOT_FOUND, _NO_SUCH_RESOURCE}


def _expect_outcomes_of_call(
    params: Mapping[str, Any], schemas: Mapping[str, Draft202012Validator]
) -> set[int | str]:
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, dict | None):
        return {INVALID_PARAMS}
    if params.keys() - {"name", "arguments"}:
        return {RAN, FAILED, INVALID_PARAMS}
    if name not in schemas:
        return {FAILED}
    if _has_odd_values(arguments or {}):
        return {RAN, FAILED}
    return {RAN if schemas[name].is_valid(arguments or {}) else FAILED}


def _has_odd_values(value: Any) -> bool:
    """Return whether there is a number beyond floats, or a text that may be read as JSON."""
    if isinstance(value, dict | list):
        return any(map(_has_odd_values, value.values() if isinstance(value, dict) else value))
    if isinstance(value, str):
        return value.strip()[:1] in set('{["-0123456789tfn')
    return isinstance(value, int | float) and not abs(value) <= 1e308
