import contextlib
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_values import (
    frame_header,
    join_frame,
    read_all,
    read_one,
    send,
    streams,
)

from mcp_notebook.content import Image, Result
from mcp_notebook.errors import FrameError
from mcp_notebook.wire import content_blocks, frames, messages


@given(st.lists(streams, min_size=1, max_size=3), st.data())
def test_where_the_stream_is_cut_into_chunks_does_not_matter(several, data):
    stream = b"".join(several)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    edges = [0, *cuts, len(stream)]
    chunks = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert read_all(chunks) == read_all([stream])
    assert len(read_all(chunks)) == len(several)


@given(streams, st.data())
def test_a_stream_that_ends_within_a_frame_ends_without_that_frame(frame, data):
    end = data.draw(st.integers(0, len(frame) - 1))
    assert read_all([frame, frame[:end]]) == read_all([frame])


@given(st.binary(min_size=4, max_size=200))
def test_garbage_is_a_frame_error_or_the_end_of_the_stream(garbage):
    with contextlib.suppress(FrameError):
        assert read_all([garbage]) == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
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
def test_a_header_that_is_not_a_message_is_a_frame_error(body):
    with pytest.raises(FrameError):
        read_all([frame_header(body)])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"type": "cancel"}', "missing required field `id`"),
        (b'{"type": "cancel", "id": "1"}', r"Expected `int`, got `str` - at `\$.id`"),
        (b'{"type": "cancel", "id": true}', "Expected `int`, got `bool`"),
        (b'{"type": "cancel", "id": 1.5}', "Expected `int`, got `float`"),
        (b'{"type": "answer", "id": 1, "question": 1, "action": "x"}', r"'x' - at `\$.action`"),
        (
            b'{"type": "welcome", "version": "1", "tools": [{"name": "f"}]}',
            r"`input_schema` - at `\$.tools\[0\]`",
        ),
        (b'{"type": "unheard of"}', "unknown type 'unheard of'"),
    ],
)
def test_the_error_says_which_member_of_a_message_is_wrong(body, says):
    with pytest.raises(FrameError, match=says):
        read_all([frame_header(body)])


def test_what_a_stranger_says_is_not_repeated_at_length():
    with pytest.raises(FrameError) as caught:
        read_all([frame_header(b'{"type": "%b"}' % (b"x" * 100_000))])
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("length", [frames.MAX_HEADER + 1, 2**32 - 1])
def test_a_header_of_an_impossible_length_is_refused_before_it_is_read(length):
    with pytest.raises(FrameError, match=str(length)):
        read_all([length.to_bytes(4, "big")])


def test_a_lone_surrogate_is_replaced_and_a_pair_becomes_its_character():
    assert send(messages.Goodbye(reason="a\ud800b \ud83d\ude00")).reason == "a\ufffdb \U0001f600"
    read = send(messages.Call(id=1, tool="f", arguments={"k\udfff": ["\ud800"]}))
    assert read.arguments == {"k\ufffd": ["\ufffd"]}


def test_what_json_cannot_say_does_not_end_the_link():
    deep = [[]]
    for _ in range(230):
        deep = [deep]
    odd = {"nan": math.nan, "bytes": b"a", "deep": deep, "long": 10**5000, "set": {1}}
    read = send(messages.Returned(id=1, content=[], structured=odd))
    assert read.structured == {
        "nan": None, "bytes": "YQ==", "deep": deep, "long": None, "set": [1],
    }  # fmt: skip


def test_numbers_beyond_floats_in_arguments_are_not_null():
    odd = {"a": [math.inf, -math.inf, {"b": math.nan}]}
    read = send(messages.Call(id=1, tool="f", arguments=odd)).arguments
    assert read["a"][:2] == [math.inf, -math.inf]
    assert math.isnan(read["a"][2]["b"])


@given(
    st.recursive(
        st.none() | st.text() | st.just("null") | st.integers() | st.floats(),
        lambda each: st.lists(each) | st.dictionaries(st.text(), each),
        max_leaves=5,
    )
)
def test_arguments_and_answers_are_read_as_they_were_sent(value):
    for message in (
        messages.Call(id=1, tool="f", arguments={"value": value}),
        messages.Call(id=1, tool="f", arguments={"value": value}, log_level="null", confirmed="n"),
        messages.Answer(id=1, question=2, content={"value": value}),
        messages.Answer(id=1, question=2, content={"value": value}, error="null"),
    ):
        assert repr(send(message)) == repr(message)  # NaN differs from itself


def test_a_circular_value_is_cut_where_it_comes_round():
    circular = [1]
    circular.append(circular)
    assert send(messages.Returned(id=1, content=[], structured=circular)).structured == [1, "..."]


def test_what_cannot_be_sent_at_all_is_refused_before_a_byte_is_written():
    circular = ["\ud800"]
    circular.append(circular)
    with pytest.raises(FrameError, match="returned"):
        frames.encode(messages.Returned(id=1, content=[], structured=circular))
    with pytest.raises(FrameError, match=f"at most {frames.MAX_HEADER}"):
        frames.encode(messages.Goodbye(reason="x" * frames.MAX_HEADER))
    part = bytes(2**20)
    too_many = [part] * (frames.MAX_ATTACHMENTS // len(part) + 1)  # the same one, to save memory
    with pytest.raises(FrameError, match=f"at most {frames.MAX_ATTACHMENTS}"):
        frames.encode(messages.Returned(id=1, content=[]), too_many)


def test_an_attachment_larger_than_the_readers_buffer_arrives_whole():
    picture = bytes(range(256)) * 20_000
    message, attachments = content_blocks.pack_result(1, Result([Image(picture)]))
    stream = join_frame(message, attachments)
    chunks = [stream[start : start + 300_000] for start in range(0, len(stream), 300_000)]
    assert content_blocks.unpack_result(*read_one(chunks)).content == (Image(picture),)
