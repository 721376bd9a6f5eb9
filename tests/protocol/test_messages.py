"""JSON-RPC messages: the official types are the judge of what one is."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp_types.jsonrpc import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic_core import from_json

from mcp_notebook.protocol.errors import INVALID_REQUEST, PARSE_ERROR, ProtocolError
from mcp_notebook.protocol.messages import (
    MAX_ID,
    Answer,
    InvalidMessage,
    Notification,
    Request,
    coerce_id,
    is_id,
    read_message,
    write_notification,
    write_request,
)

KINDS = {
    JSONRPCRequest: Request,
    JSONRPCNotification: Notification,
    JSONRPCResponse: Answer,
    JSONRPCError: Answer,
}


def values():
    """Any JSON, and what makes a message odd."""
    odd = [None, True, 0, -7, 2**70, 1.0, 1.5, "", "7", "ä", [], {}, {"code": 1, "message": "m"}]
    odd += [{"code": "1", "message": "m"}, {"code": 1}, {"code": 1, "message": "m", "data": [1]}]
    scalars = (
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    )
    scalars |= st.text()
    scalars = scalars.filter(lambda value: not isinstance(value, str) or value.isprintable())
    anything = st.recursive(
        scalars,
        lambda items: st.lists(items, max_size=3) | st.dictionaries(st.text("abc"), items),
        max_leaves=5,
    )
    return st.sampled_from(odd) | anything


def ids():
    """What an id may be."""
    return st.integers() | st.text("a1-_é/ ", min_size=0)


def objects():
    """Messages, nearly all of them with something wrong."""
    params = st.dictionaries(st.text("ab"), values(), max_size=2)
    return st.fixed_dictionaries(
        {"jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "2.0", "1.0", 2.0, None])},
        optional={
            "id": ids() | ids() | values(),
            "method": st.text("abc/") | values(),
            "params": params | params | values(),
            "result": params | values(),
            "error": values(),
            "x": values(),
        },
    )


def judge(text):
    """Return the kind of a message by the official types, and the message; None if it is none."""
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return None, None
    return KINDS[type(message)], message


def differs(content):
    """Return whether the judge takes leniently, or refuses, what is read otherwise on purpose."""
    error, has_id = content.get("error"), is_id(content.get("id"))
    code = error.get("code") if isinstance(error, dict) else None
    return (
        # A notification with an id: its sender waits for an answer.
        ("method" in content and "id" in content and not has_id)
        # Several kinds in one.
        or ("method" in content and ("result" in content or "error" in content))
        or ("result" in content and "error" in content)
        # An error whose number is a text, or that names no request.
        or (code is not None and type(code) is not int)
        or (error is not None and "id" not in content)
    )


@given(objects().filter(lambda content: not differs(content)))
def test_a_message_is_what_the_official_types_say_it_is(content):
    text = json.dumps(content).encode()
    kind, official = judge(text)
    if kind is None:
        with pytest.raises(InvalidMessage) as refusal:
            read_message(text)
        assert refusal.value.code == INVALID_REQUEST
        return
    message = read_message(text)
    assert type(message) is kind
    for name in ("id", "method", "params", "result"):
        if hasattr(official, name):
            assert getattr(message, name) == getattr(official, name)
    if isinstance(official, JSONRPCError):
        assert message.error == official.error.model_dump(exclude_unset=True)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"id": None, "method": "m"}, None),
        ({"id": 1.5, "method": "m"}, None),
        ({"id": True, "method": "m"}, None),
        ({"id": [1], "method": "m"}, None),
        ({"id": 1, "method": 7, "result": {}}, None),
        ({"id": 1, "method": "m", "result": {}}, Request),
        ({"method": "m", "error": {"code": 1, "message": "m"}}, Notification),
        ({"id": 1, "error": {"code": "1", "message": "m"}}, None),
        ({"id": 1, "error": {"code": True, "message": "m"}}, None),
        ({"error": {"code": 1, "message": "m"}}, Answer),
        ({"id": 1, "result": {}, "error": {"code": 1, "message": "m"}}, Answer),
    ],
)
def test_what_the_official_types_read_otherwise_is_read_so_on_purpose(content, kind):
    content = {"jsonrpc": "2.0"} | content
    assert differs(content)
    text = json.dumps(content).encode()
    if kind is None:
        with pytest.raises(InvalidMessage):
            read_message(text)
    else:
        assert type(read_message(text)) is kind


@given(objects(), st.data())
def test_a_message_that_is_damaged_on_the_way_is_read_or_refused_but_never_a_crash(content, data):
    text = bytearray(json.dumps(content).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text)))
        text[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    refusal = find_refusal(bytes(text))
    if refusal is not None:
        assert refusal.code in (PARSE_ERROR, INVALID_REQUEST)
        assert refusal.ids
        for request_id in refusal.ids:
            from_json(refusal.write_answer(request_id))


def find_refusal(text):
    """Return why a text is no message, None if it is one."""
    try:
        read_message(text)
    except InvalidMessage as refusal:
        return refusal
    return None


@given(st.binary(max_size=20))
@example(b"")
@example(b"\xef\xbb\xbf{}")
@example(b"\0")
@example(b'"\xff"')
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b"1" * 5_000)
@example(b"[-%b]" % (b"1" * 5_000))
@example(rb'"\ud800"')
@example(rb'"\udc00\ud800"')
def test_a_text_that_is_no_json_is_a_parse_error(text):
    try:
        from_json(text)
    except ValueError:
        with pytest.raises(InvalidMessage) as refusal:
            read_message(text)
        assert (refusal.value.code, refusal.value.ids) == (PARSE_ERROR, [None])
        assert len(refusal.value.message) < 200


REQUEST = b'{"jsonrpc":"2.0","id":%b,"method":"m","params":{"a":%b}}'


@pytest.mark.parametrize("value", [rb'"\ud800"', rb'{"\udfff":1}', b'"\xff"'])
@pytest.mark.parametrize(("number", "told"), [(b"7", 7), (b'"a"', "a"), (rb'"\ud800"', None)])
def test_a_request_with_a_text_that_is_none_is_refused_by_its_id(value, number, told):
    with pytest.raises(InvalidMessage) as refusal:
        read_message(REQUEST % (number, value))
    assert (refusal.value.code, refusal.value.ids) == (PARSE_ERROR, [told])


@pytest.mark.parametrize("value", [b"1" * 5_000, b"[" * 500 + b"]" * 500])
def test_a_request_that_is_too_much_to_read_is_refused(value):
    with pytest.raises(InvalidMessage) as refusal:
        read_message(REQUEST % (b"7", value))
    assert refusal.value.code == PARSE_ERROR


def test_an_integer_of_any_usual_size_is_kept_also_as_an_id():
    number = 10**300
    message = read_message(REQUEST % (str(number).encode(), str(-number).encode()))
    assert (message.id, message.params) == (number, {"a": -number})
    answer = ProtocolError(INVALID_REQUEST, "no").write_answer(message.id)
    assert b'"id":%b,' % str(number).encode() in answer


@given(st.lists(objects() | values(), max_size=5))
def test_a_batch_is_refused_and_each_request_in_it_is_told(items):
    with pytest.raises(InvalidMessage) as refusal:
        read_message(json.dumps(items).encode())
    waiting = [item for item in items if isinstance(item, dict) and "method" in item]
    told = [item["id"] if is_id(item.get("id")) else None for item in waiting]
    assert refusal.value.code == INVALID_REQUEST
    assert list(refusal.value.ids) == (told or [None])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"id": 3, "method": "m"}, 3),
        ({"id": 3, "method": "m", "jsonrpc": "1.0"}, 3),
        ({"id": "a", "method": "m", "params": [1], "jsonrpc": "2.0"}, "a"),
        ({"id": "a", "method": 1, "jsonrpc": "2.0"}, "a"),
        ({"id": 1.5, "method": "m", "jsonrpc": "2.0"}, None),
        ({"id": 3, "jsonrpc": "2.0"}, None),
        ({"id": 3, "result": 1, "jsonrpc": "2.0"}, None),
    ],
)
def test_a_refused_request_is_told_by_its_id(content, told):
    with pytest.raises(InvalidMessage) as refusal:
        read_message(json.dumps(content).encode())
    assert list(refusal.value.ids) == [told]


@pytest.mark.parametrize(
    ("given", "compared"),
    [
        (7, 7),
        ("7", 7),
        ("-7", -7),
        ("07", 7),
        ("7.0", "7.0"),
        ("--7", "--7"),
        ("", ""),
        ("a", "a"),
        ("9" * 5_000, "9" * 5_000),
    ],
)
def test_a_client_may_name_a_request_by_the_text_of_its_number(given, compared):
    assert coerce_id(given) == compared


@given(st.text())
def test_any_text_can_be_an_id(text):
    coerce_id(text)


@given(ids(), st.text("abc/"), st.dictionaries(st.text(), values(), max_size=3))
def test_what_is_written_is_read_again(request_id, method, params):
    assert read_message(write_request(request_id, method, params)) == Request(
        request_id, method, params
    )
    assert read_message(write_notification(method, params)) == Notification(method, params)
    assert read_message(write_notification(method)) == Notification(method)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_in_json_is_written_as_null(number):
    for text in (
        write_request(1, "m", {"a": number}),
        write_notification("m", {"a": number}),
        ProtocolError(1, "m", number).write_answer(1),
    ):
        assert b"null" in text
        json.loads(text, parse_constant=pytest.fail)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_of_json_is_refused(number):
    with pytest.raises(InvalidMessage) as caught:
        read_message(f'{{"jsonrpc": "2.0", "id": 7, "method": "a", "params": [{number}]}}'.encode())
    assert (caught.value.code, [*caught.value.ids]) == (PARSE_ERROR, [7])


@pytest.mark.parametrize("request_id", ["x" * (MAX_ID + 1), 10**400, -(10**400)])
def test_an_id_is_short_because_it_is_kept_and_sent_back(request_id):
    with pytest.raises(InvalidMessage, match="1,000 characters") as caught:
        read_message(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "ping"}).encode())
    assert (caught.value.code, [*caught.value.ids]) == (INVALID_REQUEST, [None])
