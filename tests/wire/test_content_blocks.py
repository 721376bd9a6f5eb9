import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_values import (
    read_one,
    results,
)

from mcp_notebook.content import Image, Resource, Result, Text
from mcp_notebook.errors import FrameError
from mcp_notebook.wire import content_blocks, frames, messages


@given(results)
def test_any_result_comes_back_as_it_was(result):
    message, attachments = content_blocks.pack_result(7, result)
    read, read_attachments = read_one(frames.encode(message, attachments))
    assert read.id == 7
    assert content_blocks.unpack_result(read, read_attachments) == result


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
        content_blocks.unpack_result(messages.Returned(id=1, content=[block]), [b"one"])


def test_a_result_with_an_invalid_content_block_is_refused():
    with pytest.raises(TypeError, match="'str'"):
        content_blocks.pack_result(1, Result(["hello"]))


def test_attachments_are_not_copied_on_their_way_into_a_frame():
    picture = bytes(1000)
    message, attachments = content_blocks.pack_result(1, Result([Image(picture)]))
    assert frames.encode(message, attachments)[1] is picture
    assert content_blocks.unpack_result(message, attachments).content[0].data is picture


def test_a_subclass_of_a_content_block_travels_as_that_block():
    class Shout(Text):
        pass

    arrived = content_blocks.unpack_result(*content_blocks.pack_result(1, Result([Shout("a")])))
    assert arrived.content == (Text("a"),)


@given(st.text() | st.binary())
def test_any_content_of_a_resource_arrives(data):
    message, attachments = content_blocks.pack_resource(
        1, Resource("notebook://k/1/a", data, "x/y")
    )
    (read, got) = read_one(frames.encode(message, attachments))
    assert content_blocks.unpack_resource(read, got) == Resource("notebook://k/1/a", data, "x/y")
