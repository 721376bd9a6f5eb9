import asyncio
import contextlib
import itertools
import math
import socket
import threading
import tracemalloc
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_notebook import wire
from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.errors import FrameError

any_text = st.text(st.characters())  # with lone surrogates
clean_text = st.text()
annotations = {
    "audience": st.lists(st.sampled_from(["user", "assistant"]), unique=True).map(tuple),
    "priority": st.none() | st.floats(0, 1),
    "last_modified": st.none() | st.datetimes().map(datetime.isoformat),
}
blocks = st.one_of(
    st.builds(Text, clean_text, **annotations),
    st.builds(Image, st.binary(), clean_text, **annotations),
    st.builds(Audio, st.binary(), clean_text, **annotations),
    st.builds(Resource, clean_text, clean_text | st.binary(), clean_text, **annotations),
    st.builds(ResourceLink, clean_text, clean_text, size=st.none() | st.integers(0), **annotations),
)


def json_values(text):
    return st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | text,
        lambda inner: st.lists(inner) | st.dictionaries(text, inner),
        max_leaves=10,
    )


results = st.builds(
    Result,
    st.lists(blocks, max_size=4).map(tuple),
    json_values(clean_text),
    st.booleans(),
    st.dictionaries(clean_text, json_values(clean_text), max_size=3),
)
frames = results.map(lambda result: b"".join(wire.encode(*wire.pack(7, result))))


def read_all(chunks):
    """Read the messages of a stream whose bytes arrive in these chunks."""

    async def read():
        reader = asyncio.StreamReader(limit=wire.STREAM_LIMIT)

        async def feed():
            for chunk in chunks:
                reader.feed_data(chunk)
                await asyncio.sleep(0)  # lets the reader see this chunk alone
            reader.feed_eof()

        async def take():
            messages = []
            while (frame := await wire.read_message(reader)) is not None:
                messages.append(frame)
            return messages

        _, messages = await asyncio.gather(feed(), take())
        return messages

    return asyncio.run(read())


def read_one(chunks):
    (frame,) = read_all(chunks)
    return frame


def sent(message):
    return read_one(wire.encode(message))[0]


@given(results)
def test_any_result_comes_back_as_it_was(result):
    message, attachments = wire.pack(7, result)
    read, read_attachments = read_one(wire.encode(message, attachments))
    assert read.id == 7
    assert wire.unpack(read, read_attachments) == result


@given(st.lists(frames, min_size=1, max_size=3), st.data())
@settings(max_examples=50)
def test_where_the_stream_is_cut_into_chunks_does_not_matter(several, data):
    stream = b"".join(several)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    edges = [0, *cuts, len(stream)]
    chunks = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert read_all(chunks) == read_all([stream])
    assert len(read_all(chunks)) == len(several)


@given(frames, st.data())
@settings(max_examples=50)
def test_a_stream_that_ends_within_a_frame_ends_without_that_frame(frame, data):
    end = data.draw(st.integers(0, len(frame) - 1))
    assert read_all([frame, frame[:end]]) == read_all([frame])


@given(st.binary(min_size=4, max_size=200))
def test_garbage_is_a_frame_error_or_the_end_of_the_stream(garbage):
    with contextlib.suppress(FrameError):
        assert read_all([garbage]) == []


def framed(body):
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'"hello"',
        b"{}",
        b"\xff\xff",
        b'{"type": "unheard of"}',
        b'{"type": "call", "id": "x", "tool": "f", "arguments": {}}',
        b'{"type": "cancel", "id": 1, "attachments": [-1]}',
        b'{"type": "cancel", "id": 1, "attachments": [true]}',
        b'{"type": "cancel", "id": 1, "attachments": "12"}',
        b'{"type": "cancel", "id": 1, "attachments": {"a": 1}}',
        b'{"type": "cancel", "id": 1, "attachments": null}',
        b'{"type": "cancel", "id": 1, "attachments": [2000000000, 2000000000]}',
        b"[" * 100_000,
    ],
)
def test_a_header_that_is_no_message_is_a_frame_error(body):
    with pytest.raises(FrameError):
        read_all([framed(body)])


@pytest.mark.parametrize("length", [0, wire.MAX_HEADER + 1, 2**32 - 1])
def test_a_header_of_an_impossible_length_is_refused_before_it_is_read(length):
    with pytest.raises(FrameError, match=str(length)):
        read_all([length.to_bytes(4, "big")])


@pytest.mark.parametrize(
    "block",
    [
        {},
        {"type": "film"},
        {"type": ["text"]},
        {"type": "text"},
        {"type": "text", "text": 5},
        {"type": "image", "data": 1},
        {"type": "image", "data": -1},
        {"type": "image", "data": {}},
        {"type": "text", "text": "a", "audience": ["dog"]},
    ],
)
def test_a_content_block_that_cannot_be_read_is_a_frame_error(block):
    with pytest.raises(FrameError):
        wire.unpack(wire.Returned(id=1, content=[block]), [b"one"])


def test_members_of_a_newer_version_are_ignored():
    body = b'{"type": "cancel", "id": 1, "colour": "green"}'
    assert read_one([framed(body)])[0] == wire.Cancel(id=1)
    block = {"type": "text", "text": "a", "colour": "green"}
    assert wire.unpack(wire.Returned(id=1, content=[block]), []).content == (Text("a"),)


@given(
    text=any_text,
    value=json_values(any_text),
    keyed=st.dictionaries(any_text, json_values(any_text), max_size=3),
)
def test_no_string_in_any_message_fails_to_be_sent(text, value, keyed):
    tool = wire.ToolInfo(name=text, title=text, description=text, input_schema=keyed, meta=keyed)
    for message in [
        wire.Hello(version=text, token=text),
        wire.Call(id=1, tool=text, arguments=keyed),
        wire.Cancel(id=1, reason=text),
        wire.Welcome(version=text, tools=[tool]),
        wire.Refused(message=text),
        wire.Tools(tools=[tool]),
        wire.Progress(id=1, progress=0.5, message=text),
        wire.Log(id=1, level="info", text=text),
        wire.Returned(id=1, content=[{"type": "text", "text": text}], structured=value, meta=keyed),
        wire.Goodbye(reason=text),
    ]:
        assert type(sent(message)) is type(message)


def test_a_lone_surrogate_is_replaced_and_a_pair_becomes_its_character():
    assert sent(wire.Goodbye(reason="a\ud800b \ud83d\ude00")).reason == "a\ufffdb \U0001f600"
    read = sent(wire.Call(id=1, tool="f", arguments={"k\udfff": ["\ud800"]}))
    assert read.arguments == {"k\ufffd": ["\ufffd"]}


def test_what_json_cannot_say_does_not_end_the_link():
    deep = [[]]
    for _ in range(230):
        deep = [deep]
    odd = {"nan": math.nan, "bytes": b"\xff", "deep": deep, "long": 10**5000, "set": {1}}
    read = sent(wire.Returned(id=1, content=[], structured=odd))
    assert read.structured == {
        "nan": None, "bytes": "_w==", "deep": deep, "long": None, "set": [1],
    }  # fmt: skip


def test_a_circular_value_is_cut_where_it_comes_round():
    circular = [1]
    circular.append(circular)
    assert sent(wire.Returned(id=1, content=[], structured=circular)).structured == [1, "..."]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_progress_that_is_no_number_does_not_end_the_link(value):
    read = sent(wire.Progress(id=1, progress=value, total=value))
    assert read == wire.Progress(id=1)


def test_what_cannot_be_sent_at_all_is_refused_before_a_byte_is_written(monkeypatch):
    circular = ["\ud800"]
    circular.append(circular)
    with pytest.raises(FrameError, match="returned"):
        wire.encode(wire.Returned(id=1, content=[], structured=circular))
    monkeypatch.setattr(wire, "MAX_HEADER", 100)
    with pytest.raises(FrameError, match="at most 100"):
        wire.encode(wire.Goodbye(reason="x" * 100))
    monkeypatch.setattr(wire, "MAX_ATTACHMENTS", 3)
    with pytest.raises(FrameError, match="at most 3"):
        wire.encode(*wire.pack(1, Result([Image(b"four")])))


def test_a_result_with_something_that_is_no_content_block_is_refused():
    with pytest.raises(TypeError, match="'str'"):
        wire.pack(1, Result(["hello"]))


def test_attachments_are_not_copied_on_their_way_into_a_frame():
    picture = bytes(1000)
    message, attachments = wire.pack(1, Result([Image(picture)]))
    assert wire.encode(message, attachments)[1] is picture
    assert wire.unpack(message, attachments).content[0].data is picture


def test_other_bytes_like_data_travel_too():
    result = Result([Image(bytearray(b"abc")), Image(memoryview(b"def"))])
    assert [block.data for block in wire.unpack(*wire.pack(1, result)).content] == [b"abc", b"def"]


def test_a_subclass_of_a_content_block_travels_as_that_block():
    class Shout(Text):
        pass

    assert wire.unpack(*wire.pack(1, Result([Shout("a")]))).content == (Text("a"),)


def test_an_attachment_larger_than_the_readers_buffer_arrives_whole():
    picture = bytes(range(256)) * 20_000
    message, attachments = wire.pack(1, Result([Image(picture)]))
    stream = b"".join(wire.encode(message, attachments))
    chunks = [stream[start : start + 300_000] for start in range(0, len(stream), 300_000)]
    assert wire.unpack(*read_one(chunks)).content == (Image(picture),)


@given(st.text() | st.binary())
def test_any_content_of_a_resource_arrives(data):
    message, attachments = wire.pack_contents(1, Resource("notebook://k/1/a", data, "x/y"))
    (read, got) = read_one(wire.encode(message, attachments))
    assert wire.unpack_contents(read, got) == Resource("notebook://k/1/a", data, "x/y")


def test_a_content_without_its_attachment_is_no_content():
    with pytest.raises(FrameError, match="0 attachments"):
        wire.unpack_contents(wire.Contents(id=1), [])


@pytest.mark.parametrize("uri", ["", "notebook:", "notebook://", "notebook:///a", "file://k/a"])
def test_only_uris_of_ours_name_a_kernel(uri):
    assert wire.kernel_of(uri) is None
    assert wire.kernel_of(wire.resource_prefix("k") + "1/a") == "k"


def test_reading_an_attachment_takes_its_size_once():
    size = 30_000_000
    frame = b"".join(wire.encode(*wire.pack(1, Result([Image(bytes(size))]))))
    ours, theirs = socket.socketpair()

    async def read():
        reader, writer = await asyncio.open_connection(sock=ours, limit=wire.STREAM_LIMIT)
        _, attachments = await wire.read_message(reader)
        writer.close()
        return [len(attachment) for attachment in attachments]  # not them: asyncio shows results

    sender = threading.Thread(target=theirs.sendall, args=[frame])
    sender.start()
    tracemalloc.start()
    sizes = asyncio.run(read())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    sender.join()
    theirs.close()
    assert sizes == [size]
    assert peak < 1.5 * size
