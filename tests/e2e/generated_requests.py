"""Requests from a seed, of both eras and transports: valid ones, odd ones and broken ones.

Each is made from one that is plain, a ``tools/call`` or a list as clients request it, by up to
three changes: to the message, to its `_meta`, to the headers, to the bytes, to the request itself.
A change says whether a request of this kind may still be answered on the short way.
"""

import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from bad_input import NUMBERS, RAW_NUMBERS, TEXTS, make_json, spoil, spoil_bytes
from mcp.shared.inbound import encode_header_value

MODERN_VERSION = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
LEVEL = "io.modelcontextprotocol/logLevel"

PLAIN, EITHER, PASSED_ON = "plain", "either", "passed on"
"""A request has to be answered on the short way, may be, or must not be."""

TOOLS = r'''%%mcp_tool
import base64
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from mcp_notebook import (
    Audio, Context, Header, Image, Resource, ResourceLink, Result, Text, ToolError
)

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)
NOTED = Text("for the user", audience="user", priority=0.5, last_modified="2025-01-12T15:00:58Z")
LINK = ResourceLink("https://example.com/a.csv", name="a.csv", title="A", description="Rows.")
PAGE = Resource("file:///a.txt", data="text", mime_type="text/plain")
FILE = Resource("file:///a.bin", data=b"\x00\xff", mime_type="application/octet-stream")
BLOCKS = {
    "picture": Image(PIXEL),
    "sound": Audio(b"OggS" * 9, audience=["user", "assistant"]),
    "link": LINK,
    "page": PAGE,
    "file": FILE,
    "noted": NOTED,
    "mixed": [NOTED, Image(PIXEL), LINK, PAGE, FILE, "and a text"],
    "none": [],
}
TEXTS = {
    "empty": "",
    "words": "ä€\U0001f600 \u2028\u2029 \u202e",
    "controls": "\x00\x1b[1m\x7f\r\n\t\\\"/<>&",
    "surrogate": "a\ud800b",
    "lines": "one\ntwo\n" * 20,
}
VALUES = {
    "object": {"a": 1, "ä": [1.5, None, True, "x"]},
    "list": [1, 2.0, "3"],
    "null": None,
    "nan": {"a": float("nan"), "b": float("inf")},
    "large": 2**70,
    "deep": [[[[[]]]]],
}


@dataclass
class Row:
    name: str
    size: float = 0


def add(a: int, b: int = 1) -> int:
    """Add numbers."""
    return a + b

def echo(value: Any = None) -> Any:
    """Return what comes."""
    return value

def text(kind: Literal["empty", "words", "controls", "surrogate", "lines"]) -> str:
    """Return a text."""
    return TEXTS[kind]

def block(kind: str):
    """Return blocks of content."""
    return BLOCKS[kind]

def structured(kind: str):
    """Return data for programs."""
    return Result([Text(kind)], structured=VALUES[kind], meta={"com.example/a": [1, kind]})

def row(name: str, size: float = 0) -> Row:
    """Return an object with a schema."""
    return Row(name, size)

def fail(kind: str = "tool") -> str:
    """Fail."""
    if kind == "tool":
        raise ToolError("Try \ud800 another.")
    if kind == "exit":
        sys.exit(3)
    raise ValueError(kind)

def say(word: str) -> None:
    """Print."""
    print(word)
    print(word, file=sys.stderr)

def region(
    region: Annotated[str, Header("Region")],
    count: Annotated[int, Header("Count")] = 1,
    flag: Annotated[bool, Header("Flag")] = False,
) -> str:
    """Take arguments that clients repeat in headers."""
    return f"{region} {count} {flag}"

def report(ctx: Context) -> str:
    """Say what it does."""
    ctx.log("It goes on.")
    return "done"

async def ask(ctx: Context) -> str:
    """Ask the user for an object."""
    try:
        return str(await ctx.elicit_async("Which row?", Row, key="row"))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
'''
"""A cell with tools whose results depend on nothing but their arguments."""

DECLARED = (
    """%%mcp_prompt review(name: str, size: int = 3) --title Review
Review the table {name}.""",
    "%%mcp_resource data://rate --title Rate --mime-type text/plain\n1.5",
    '''%%mcp_resource data://tables/{name}
def table(name: str):
    """Return a table."""
    return name''',
)
"""Cells with a prompt, a resource and a template."""
LISTS = ("tools/list", "tools/list", "prompts/list", "resources/list", "resources/templates/list")

FITTING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("add", {"a": 1, "b": 2}),
    ("add", {"a": -5}),
    ("echo", {"value": "hello"}),
    ("echo", {"value": {"a": [1, 2.5, None, True, {"ä": "\U0001f600"}]}}),
    ("echo", {}),
    *(("text", {"kind": kind}) for kind in ("empty", "words", "controls", "surrogate", "lines")),
    *(
        ("block", {"kind": kind})
        for kind in ("picture", "sound", "link", "page", "file", "noted", "mixed", "none")
    ),
    *(
        ("structured", {"kind": kind})
        for kind in ("object", "list", "null", "nan", "large", "deep")
    ),
    ("row", {"name": "a", "size": 2}),
    ("row", {"name": "ä\n"}),
    ("fail", {}),
    ("fail", {"kind": "other"}),
    ("say", {"word": "hi"}),
    ("region", {"region": "EU"}),
    ("region", {"region": "Köln ", "count": 7, "flag": True}),
)
"""Calls that the schemas of the tools allow."""
HEADERS_OF_REGION = {
    "region": "mcp-param-region",
    "count": "mcp-param-count",
    "flag": "mcp-param-flag",
}


def _describe_session(
    version: str, name: str = "test", *, caller: str = "owner", **capabilities: Any
) -> dict[str, Any]:
    params = {
        "protocolVersion": version,
        "capabilities": capabilities,
        "clientInfo": {"name": name, "version": "1"},
    }
    return {"caller": caller, "params": params}


SESSIONS = {
    "usual": _describe_session("2025-11-25"),
    "codex": _describe_session("2025-11-25", "codex-mcp-client"),
    "opencode": _describe_session("2025-06-18", "opencode"),
    "asking": _describe_session("2025-11-25", elicitation={"form": {}}),
    "first": _describe_session("2024-11-05"),
    "second": _describe_session("2025-03-26"),
    "third": _describe_session("2025-06-18"),
    "another's": _describe_session("2025-11-25", caller="reader"),
}
"""Sessions of the handshake era: who opens them, and how."""


@dataclass
class Request:
    """What a client sends over HTTP; over stdio, its body alone."""

    era: str
    message: Any
    kind: str = PLAIN
    labels: list[str] = field(default_factory=list)
    method: str = "POST"
    path: str = "/mcp"
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    chunks: int = 1
    has_length: bool = True
    caller: str = "owner"
    session: str | None = None
    """Its name; the header is added with the id of it, which each server has made itself."""

    def __str__(self) -> str:
        head = f"{self.kind} {self.era} {'+'.join(self.labels) or 'as it should be'}"
        rest = f"{self.method} {self.path} {self.caller} {self.session} {self.headers}"
        body = self.body if len(self.body) < 2_000 else self.body[:1_000] + b"..."
        return f"{head}: {rest} {body!r}"


Change = Callable[[Random, Request], str]
"""Changes a request, and returns which way it may be answered on."""


def make_http_request(random: Random, era: str) -> Request:
    """Return a request over HTTP."""
    request = _make_plain(random, era)
    changes = [_choose(random, _CHANGES_OVER_HTTP) for _ in range(_choose_count(random))]
    _apply(random, request, [each for each in changes if each[0] in _OF_MESSAGES])
    _add_headers(random, request)
    request.body = request.body or _write(random, request.message)
    _apply(random, request, [each for each in changes if each[0] not in _OF_MESSAGES])
    return request


def make_line(random: Random, era: str) -> Request:
    """Return a request over stdio: a line."""
    request = _make_plain(random, era)
    changes = [_choose(random, _CHANGES_OVER_STDIO) for _ in range(_choose_count(random))]
    _apply(random, request, [each for each in changes if each[0] in _OF_MESSAGES])
    request.body = request.body or _write(random, request.message)
    _apply(random, request, [each for each in changes if each[0] not in _OF_MESSAGES])
    request.body = request.body.replace(b"\n", b" ")
    return request


def _choose_count(random: Random) -> int:
    return random.choice((0, 0, 0, 1, 1, 1, 1, 1, 2, 3))


def _choose(random: Random, changes: "Iterable[tuple[str, Change]]") -> "tuple[str, Change]":
    return random.choice(list(changes))


def _apply(random: Random, request: Request, changes: "list[tuple[str, Change]]") -> None:
    for name, change in changes:
        try:
            kind = change(random, request)
        except (KeyError, TypeError, AttributeError, IndexError):
            kind = EITHER  # it was made only in part: what it is about is not there
        request.labels.append(name)
        request.kind = kind if request.kind == PLAIN else EITHER


def _make_plain(random: Random, era: str) -> Request:
    request_id = random.choice((random.randrange(1_000_000), f"r-{random.randrange(1_000_000)}"))
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
    if random.random() < 0.15:
        message |= {"method": random.choice(LISTS), "params": {}}
    else:
        name, arguments = random.choice(FITTING)
        message |= {"method": "tools/call", "params": {"name": name, "arguments": arguments}}
        if not arguments and random.random() < 0.5:
            del message["params"]["arguments"]
    message = json.loads(json.dumps(message))
    if era == "modern":
        meta = {VERSION: MODERN_VERSION, CAPABILITIES: {}}
        if random.random() < 0.7:
            meta[CLIENT] = {"name": random.choice(("test", "codex-mcp-client")), "version": "1"}
        message["params"]["_meta"] = meta
    elif message["method"] in LISTS and random.random() < 0.5:
        del message["params"]
    session = None if era == "modern" else random.choice(list(SESSIONS))
    request = Request(era, message, session=session)
    if session == "another's" or (era == "modern" and random.random() < 0.1):
        request.caller, request.kind = "reader", EITHER
    return request


def _add_headers(random: Random, request: Request) -> None:
    headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ]
    if request.era == "modern":
        headers.append(("mcp-protocol-version", MODERN_VERSION))
        headers += _repeat_message(request.message)
    elif random.random() < 0.8:
        version = SESSIONS[request.session]["params"]["protocolVersion"]
        headers.append(("mcp-protocol-version", version))
    random.shuffle(headers)
    request.headers = headers


def _repeat_message(message: Any) -> Iterable[tuple[str, str]]:
    """Yield the headers that repeat what is in a message."""
    if not isinstance(message, dict):
        return
    method, params = message.get("method"), message.get("params")
    if isinstance(method, str) and method.isprintable() and method.isascii():
        yield "mcp-method", method
    params = params if isinstance(params, dict) else {}
    name = params.get("uri" if method == "resources/read" else "name")
    if isinstance(name, str):
        yield "mcp-name", _encode(name)
    arguments = params.get("arguments")
    if name == "region" and isinstance(arguments, dict):
        for key, header in HEADERS_OF_REGION.items():
            value = arguments.get(key)
            if isinstance(value, str | int):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                yield header, _encode(text)


def _encode(text: str) -> str:
    try:
        return encode_header_value(text)
    except UnicodeEncodeError:
        return "?"


def _write(random: Random, value: Any) -> bytes:
    """Return the JSON of a value, in one of the ways in which it can be written."""
    if random.random() < 0.3 and isinstance(value, dict):
        value = dict(random.sample(list(value.items()), len(value)))
    compact = random.random() < 0.5
    text = json.dumps(
        value,
        ensure_ascii=random.random() < 0.5 or "\\ud8" in json.dumps(value),
        separators=(",", ":") if compact else None,
        indent=None if compact or random.random() < 0.8 else 1,
    )
    for raw in RAW_NUMBERS:
        text = text.replace(f'"@raw:{raw}"', raw)
    return text.encode()


# -- changes to the message ------------------------------------------------------------------------


def _change_id(random: Random, request: Request) -> str:
    good = (
        "",
        "a",
        "ä€\U0001f600",
        "\x00",
        "1",
        0,
        -1,
        2**31,
        2**53 + 1,
        2**64,
        -(10**30),
        "x" * 300,
    )
    request.message["id"] = random.choice(good)
    return EITHER


def _break_id(random: Random, request: Request) -> str:
    bad = (
        None,
        1.5,
        1.0,
        -0.0,
        1e308,
        True,
        False,
        [],
        [1],
        {},
        {"a": 1},
        "\ud800",
        "@raw:NaN",
        "@raw:1e999",
    )
    request.message["id"] = random.choice(bad)
    return PASSED_ON


def _drop_id(random: Random, request: Request) -> str:
    del request.message["id"]
    return PASSED_ON


def _change_version(random: Random, request: Request) -> str:
    request.message["jsonrpc"] = random.choice(("1.0", "2", 2.0, 2, None, "2.0 ", [], "3.0"))
    if random.random() < 0.3:
        del request.message["jsonrpc"]
    return PASSED_ON


_METHODS = (
    "ping",
    "initialize",
    "server/discover",
    "skills/list",
    "logging/setLevel",
    "completion/complete",
    "nobody/knows",
    "TOOLS/CALL",
    "tools/call ",
    "tools/Call",
    "tools",
    "",
    "notifications/initialized",
    "notifications/cancelled",
    "tasks/get",
    "ä",
)


def _change_method(random: Random, request: Request) -> str:
    method = request.message["method"] = random.choice(_METHODS)
    return EITHER if method in ("ping", "server/discover") else PASSED_ON  # plain over stdio


def _break_method(random: Random, request: Request) -> str:
    request.message["method"] = random.choice((None, 1, [], {}, True, ["tools/call"]))
    if random.random() < 0.3:
        del request.message["method"]
    return PASSED_ON


def _swap_method(random: Random, request: Request) -> str:
    call = request.message["method"] == "tools/call"
    request.message["method"] = "tools/list" if call else "tools/call"
    return EITHER


def _change_params(random: Random, request: Request) -> str:
    request.message["params"] = random.choice((None, [], [1], "a", 1, True, {}))
    if random.random() < 0.2:
        del request.message["params"]
    return EITHER


def _add_member(random: Random, request: Request) -> str:
    holder = random.choice((request.message, request.message["params"]))
    holder[random.choice((*TEXTS, "result", "error", "task", "cursor", "inputResponses"))] = (
        make_json(random)
    )
    return EITHER


def _add_state(random: Random, request: Request) -> str:
    """Be a call that comes back with an answer, to a question that nobody has asked."""
    answer = {"action": "accept", "content": {}}
    request.message["params"] |= random.choice(
        (
            {"requestState": random.choice(("a", "", None, 1))},
            {"inputResponses": random.choice(({}, {"key": answer}, None, []))},
            {"requestState": "a", "inputResponses": {"key": answer}},
            {"task": random.choice(({}, {"ttl": 1_000}, None))},
        )
    )
    return EITHER


def _change_name(random: Random, request: Request) -> str:
    params = request.message["params"]
    name = params["name"]
    values = (
        "nobody",
        "",
        name.upper(),
        f"{name} ",
        f"notebook.{name}",
        *TEXTS,
        None,
        1,
        True,
        [],
        {},
    )
    params["name"] = random.choice(values)
    if random.random() < 0.1:
        del params["name"]
    return EITHER


def _change_arguments(random: Random, request: Request) -> str:
    params = request.message["params"]
    match random.randrange(4):
        case 0:
            params["arguments"] = random.choice((None, [], "a", 1, True, {"extra": 1}, {}))
        case 1:
            params["arguments"] = spoil(random, params["arguments"])
        case 2:
            params["arguments"][random.choice(list(params["arguments"]))] = make_json(random)
        case 3:
            params["name"], params["arguments"] = "echo", {"value": make_json(random)}
    return EITHER


def _nest_arguments(random: Random, request: Request) -> str:
    depth = random.choice((5, 50, 99, 100, 101, 150, 255))
    value: Any = 1
    for _ in range(depth):
        value = [value] if random.random() < 0.5 else {"a": value}
    request.message["params"] |= {"name": "echo", "arguments": {"value": value}}
    return EITHER


def _call_a_tool_that_talks(random: Random, request: Request) -> str:
    request.message["method"] = "tools/call"
    request.message["params"] |= {"name": random.choice(("report", "ask")), "arguments": {}}
    return EITHER


def _change_cursor(random: Random, request: Request) -> str:
    request.message["method"] = "tools/list"
    request.message.setdefault("params", {})["cursor"] = random.choice(
        ("", "a", "1", "0", None, 1, 1.5, [], {}, True, "x" * 300, "\ud800")
    )
    return EITHER


def _spoil_message(random: Random, request: Request) -> str:
    request.message = spoil(random, request.message)
    return EITHER


# -- changes to `_meta` ----------------------------------------------------------------------------


def _change_meta(random: Random, request: Request) -> str:
    params = request.message.setdefault("params", {})
    match random.randrange(3):
        case 0:
            params["_meta"] = random.choice((None, [], "a", 1, True))
        case 1:
            params.pop("_meta", None)
        case 2:
            params["_meta"] = {}
    return EITHER


def _add_to_meta(random: Random, request: Request) -> str:
    meta = request.message.setdefault("params", {}).setdefault("_meta", {})
    key, values = random.choice(
        (
            ("progressToken", ("t", "", 0, 7, -1, 1.5, None, True, [], {}, 2**70, "ä")),
            ("progress_token", ("t", 7, None)),
            (LEVEL, ("debug", "info", "emergency", "loud", "", None, 1, [])),
            ("traceparent", (f"00-{'a' * 32}-{'b' * 16}-01", "x", "", None, 1)),
            ("tracestate", ("a=1", "", None)),
            ("baggage", ("a=1", "ä", None)),
            ("com.example/a", (1, None, {"b": [1]})),
            ("io.modelcontextprotocol/other", (1, {})),
            ("io.modelcontextprotocol/related-task", ({"taskId": "a"}, 1)),
            ("", (1,)),
            ("\ud800", (1,)),
        )
    )
    meta[key] = random.choice(values)
    if request.message["params"].get("name") == "say":
        # Whether what it prints becomes progress is a matter of time.
        request.message["params"] |= {"name": "report", "arguments": {}}
    return EITHER


def _add_progress(random: Random, request: Request) -> str:
    meta = request.message.setdefault("params", {}).setdefault("_meta", {})
    meta["progressToken"] = random.choice(("t", 7))
    request.message["method"] = "tools/call"
    request.message["params"] |= {"name": "report", "arguments": {}}
    return EITHER


def _change_envelope(random: Random, request: Request) -> str:
    """Change what a request of 2026-07-28 says of its client; of older ones, add it."""
    meta = request.message.setdefault("params", {}).setdefault("_meta", {})
    if VERSION not in meta:
        meta |= {VERSION: MODERN_VERSION, CAPABILITIES: {}}
    key, values = random.choice(
        (
            (VERSION, ("2025-11-25", "2099-01-01", "", None, 1, [], MODERN_VERSION)),
            (
                CAPABILITIES,
                (
                    {"elicitation": {}},
                    {"elicitation": {"form": {}, "url": {}}},
                    {"elicitation": None},
                    {"sampling": {}, "roots": {"listChanged": True}},
                    {"extensions": {"io.modelcontextprotocol/tasks": {}}},
                    {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}}},
                    {"extensions": []},
                    {"experimental": {"a": {}}},
                    {"elicitation": 1},
                    {"nobody": "knows"},
                    None,
                    [],
                    "a",
                    1,
                ),
            ),
            (
                CLIENT,
                (
                    {"name": "a", "version": "b", "title": "c", "icons": []},
                    {"name": "ä" * 300, "version": ""},
                    {"name": "copilot-cli", "version": "1"},
                    {"name": "opencode", "version": "1"},
                    {"name": "a"},
                    {"name": 1, "version": "1"},
                    {"name": "a", "version": None},
                    {"name": "\ud800", "version": "1"},
                    {},
                    None,
                    [],
                    "a",
                ),
            ),
        )
    )
    meta[key] = random.choice(values)
    if random.random() < 0.2:
        del meta[random.choice((VERSION, CAPABILITIES))]
    return EITHER


_OF_MESSAGES: dict[str, Change] = {
    "id": _change_id,
    "broken id": _break_id,
    "no id": _drop_id,
    "version": _change_version,
    "method": _change_method,
    "broken method": _break_method,
    "other method": _swap_method,
    "params": _change_params,
    "member": _add_member,
    "state": _add_state,
    "name": _change_name,
    "arguments": _change_arguments,
    "more arguments": _change_arguments,
    "depth": _nest_arguments,
    "talk": _call_a_tool_that_talks,
    "cursor": _change_cursor,
    "spoilt": _spoil_message,
    "meta": _change_meta,
    "in meta": _add_to_meta,
    "more in meta": _add_to_meta,
    "progress": _add_progress,
    "envelope": _change_envelope,
    "more of the envelope": _change_envelope,
}


# -- changes to the bytes --------------------------------------------------------------------------


def _truncate(random: Random, request: Request) -> str:
    request.body = request.body[: random.randrange(len(request.body.rstrip()) or 1)]
    return PASSED_ON


def _append(random: Random, request: Request) -> str:
    request.body += random.choice((b"x", b"{}", b"\0", b"]", b",", request.body, b"\x0b", b"\xff"))
    return PASSED_ON


def _pad(random: Random, request: Request) -> str:
    space = random.choice((b" ", b"\t", b"\r", b"\r\n", b"  \n"))
    request.body = request.body + space if random.random() < 0.5 else space + request.body
    return EITHER


def _prepend(random: Random, request: Request) -> str:
    request.body = (
        random.choice((b"\xef\xbb\xbf", b"\0", b"\x0c", b"x", b"\xff\xfe")) + request.body
    )
    return EITHER


def _encode_otherwise(random: Random, request: Request) -> str:
    text = request.body.decode("utf-8", "replace")
    coding = random.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "utf-8-sig"))
    request.body = text.encode(coding, "replace").replace(b"\n", b" ")
    return EITHER


def _batch(random: Random, request: Request) -> str:
    request.body = b"[" + b",".join([request.body] * random.choice((0, 1, 1, 2))) + b"]"
    return PASSED_ON


def _replace_body(random: Random, request: Request) -> str:
    bodies = (b"", b" ", b"null", b"1", b'"a"', b"[]", b"{}", b"true", b"1e400", b"[" * 3_000)
    answers = (
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
    )
    request.body = random.choice(bodies + answers)
    return PASSED_ON


def _spoil_bytes(random: Random, request: Request) -> str:
    request.body = spoil_bytes(random, request.body)
    return EITHER


def _double_key(random: Random, request: Request) -> str:
    doubled = (
        b'"id":1,',
        b'"id":"other",',
        b'"method":"ping",',
        b'"method":"tools/list",',
        b'"params":{},',
        b'"params":{"name":"add","arguments":{"a":1}},',
        b'"jsonrpc":"1.0",',
        b'"jsonrpc":"2.0",',
    )
    at_front = request.body.replace(b"{", b"{" + random.choice(doubled), 1)
    at_end = request.body.rstrip()[:-1] + b"," + random.choice(doubled)[:-1] + b"}"
    within = request.body.replace(b'"name":', b'"name":"echo","name":', 1)
    inner = request.body.replace(b'"arguments":', b'"arguments":{"value":1},"arguments":', 1)
    request.body = random.choice((at_front, at_end, within, inner))
    return EITHER


def _escape(random: Random, request: Request) -> str:
    """Write letters as escapes: the same message."""
    for word in random.sample((b"method", b"params", b"tools/call", b"name", b"id"), 2):
        escaped = b"".join(b"\\u%04x" % letter for letter in word)
        request.body = request.body.replace(b'"%b"' % word, b'"%b"' % escaped, 1)
    return EITHER


def _write_odd_number(random: Random, request: Request) -> str:
    raw = random.choice((*RAW_NUMBERS, *map(str, NUMBERS[:9])))
    return _call_echo(request, raw.encode())


def _write_odd_text(random: Random, request: Request) -> str:
    texts = (
        rb"\ud800",
        rb"\ud83d\ude00",
        rb"\ude00\ud83d",
        b"\xed\xa0\x80",
        b"\xff",
        b"\t",
        rb"\x",
        rb"\u12",
    )
    return _call_echo(request, b'"%b"' % random.choice(texts))


def _call_echo(request: Request, value: bytes) -> str:
    """Let it be a call of `echo` with this value, given as JSON."""
    request.body = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",'
        b'"arguments":{"value":%b}%b}}'
    ) % (value, _meta_text(request))
    _name_in_headers(request, "echo")
    return EITHER


def _name_in_headers(request: Request, tool: str) -> None:
    """Let the headers say that it is a call of this tool, where they say something."""
    headers = [header for header in request.headers if not header[0].startswith("mcp-")]
    names = [header for header in request.headers if header[0] == "mcp-protocol-version"]
    if request.era == "modern" and names:
        names += [("mcp-method", "tools/call"), ("mcp-name", tool)]
    request.headers = headers + names


def _meta_text(request: Request) -> bytes:
    if request.era != "modern":
        return b""
    return b',"_meta":' + json.dumps({VERSION: MODERN_VERSION, CAPABILITIES: {}}).encode()


_OF_BYTES: dict[str, Change] = {
    "cut": _truncate,
    "more": _append,
    "space": _pad,
    "before": _prepend,
    "coding": _encode_otherwise,
    "batch": _batch,
    "body": _replace_body,
    "bytes": _spoil_bytes,
    "key twice": _double_key,
    "escapes": _escape,
    "number": _write_odd_number,
    "text": _write_odd_text,
}


# -- changes to the headers and the request --------------------------------------------------------

_HEADER_VALUES = {
    "accept": (
        "*/*",
        "application/*",
        "application/json",
        "text/event-stream",
        "text/*, application/*",
        "Application/JSON, Text/Event-Stream",
        "application/json;q=0.5, text/event-stream;q=0",
        "application/json,text/event-stream",
        "text/html",
        "",
        ",",
        "application/jsonx, text/event-streamx",
    ),
    "content-type": (
        "application/json; charset=utf-8",
        "application/json;charset=UTF-16",
        "APPLICATION/JSON",
        "application/json, text/plain",
        "application/jsonx",
        "application/vnd.api+json",
        "text/plain",
        "text/json",
        "",
    ),
    "mcp-protocol-version": (
        "2026-07-28",
        "2025-11-25",
        "2025-06-18",
        "2025-03-26",
        "2024-11-05",
        "2099-01-01",
        "DRAFT",
        "",
        "2026-07-28, 2025-11-25",
        "2026-07-28x",
    ),
    "mcp-method": (
        "tools/call",
        "tools/list",
        "TOOLS/CALL",
        "ping",
        "",
        "=?base64?dG9vbHMvY2FsbA==?=",
    ),
    "mcp-name": (
        "add",
        "ADD",
        "echo",
        "nobody",
        "",
        "=?base64?YWRk?=",
        "=?base64?YWR?=",
        "=?base64?",
        "\xe4",
    ),
    "mcp-param-region": ("EU", "eu", "", "=?base64?RVU=?=", "=?base64?!?=", "\xe4"),
    "mcp-param-count": ("1", "7", "07", "7.0", "", "x"),
    "mcp-param-flag": ("true", "True", "false", "1", ""),
    "mcp-param-other": ("1", ""),
    "mcp-session-id": ("nobody-knows", "", "\xe4", "a b", "x" * 100),
    "last-event-id": ("1", ""),
    "origin": ("http://localhost", "http://example.com"),
}


def _set_header(random: Random, request: Request) -> str:
    name = random.choice(list(_HEADER_VALUES))
    request.headers = [header for header in request.headers if header[0] != name]
    request.headers.append((name, random.choice(_HEADER_VALUES[name])))
    if name == "mcp-session-id":
        request.session = None
    return EITHER


def _contradict_message(random: Random, request: Request) -> str:
    """Let a header that repeats something of the message say something else that is possible."""
    call = request.message["method"] == "tools/call"
    name, value = random.choice(
        (
            ("mcp-method", "tools/list" if call else "tools/call"),
            ("mcp-name", random.choice(("echo", "text", "=?base64?ZWNobw==?="))),
            ("mcp-name", f"=?base64?{_encode_base64(request.message['params']['name'])}?="),
            ("mcp-param-region", random.choice(("EU", "US", "=?base64?RVU=?="))),
            ("mcp-param-count", random.choice(("1", "7", "8"))),
            ("mcp-param-flag", random.choice(("true", "false"))),
            ("mcp-protocol-version", "2025-11-25" if request.era == "modern" else MODERN_VERSION),
        )
    )
    request.headers = [header for header in request.headers if header[0] != name]
    if random.random() < 0.8:
        request.headers.append((name, value))
    return EITHER


def _encode_base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode()


def _drop_header(random: Random, request: Request) -> str:
    request.headers.remove(random.choice(request.headers))
    return EITHER


def _double_header(random: Random, request: Request) -> str:
    name, value = random.choice(request.headers)
    other = random.choice((value, random.choice(_HEADER_VALUES[name])))
    request.headers.insert(random.randrange(len(request.headers) + 1), (name, other))
    return EITHER


def _change_value(random: Random, request: Request) -> str:
    index = random.randrange(len(request.headers))
    name, value = request.headers[index]
    base64_value = f"=?base64?{_encode_base64(value)}?="
    values = (f" {value}", f"{value} ", f"\t{value}", value.upper(), value.title(), base64_value)
    request.headers[index] = name, random.choice(values)
    return EITHER


def _add_harmless_header(random: Random, request: Request) -> str:
    header = random.choice((("user-agent", "a"), ("accept-encoding", "gzip")))
    request.headers = [header, *(other for other in request.headers if other != header)]
    return PLAIN


def _change_session(random: Random, request: Request) -> str:
    request.session = random.choice((None, *SESSIONS, "ended"))
    return EITHER


def _change_request_method(random: Random, request: Request) -> str:
    request.method = random.choice(("GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "post"))
    if request.method == "DELETE":
        request.session = random.choice((None, "first", "second", "ended", "another's"))
    return PASSED_ON


def _change_path(random: Random, request: Request) -> str:
    request.path = random.choice(("/mcp/", "/", "/MCP", "/mcp/x", ""))
    return EITHER


def _send_in_pieces(random: Random, request: Request) -> str:
    request.chunks = random.choice((1, 2, 3, 10))
    request.has_length = random.random() < 0.5
    return EITHER


def _be_somebody_else(random: Random, request: Request) -> str:
    request.caller = random.choice(("reader", "reader", "nobody"))
    return EITHER


_OF_HEADERS: dict[str, Change] = {
    "header": _set_header,
    "another header": _set_header,
    "contradiction": _contradict_message,
    "another contradiction": _contradict_message,
    "no header": _drop_header,
    "header twice": _double_header,
    "value": _change_value,
    "harmless header": _add_harmless_header,
    "session": _change_session,
    "request": _change_request_method,
    "path": _change_path,
    "pieces": _send_in_pieces,
    "caller": _be_somebody_else,
}
_CHANGES_OVER_STDIO = tuple((_OF_MESSAGES | _OF_BYTES).items())
_CHANGES_OVER_HTTP = tuple((_OF_MESSAGES | _OF_BYTES | _OF_HEADERS).items())
