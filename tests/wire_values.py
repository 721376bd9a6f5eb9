"""Any result and any stream of the link, for hypothesis; messages through bytes and back."""

import asyncio
from datetime import datetime

from frame_streams import read_message
from hypothesis import strategies as st

from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.wire import content_blocks, frames

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
        lambda values: st.lists(values) | st.dictionaries(text, values),
        max_leaves=10,
    )


results = st.builds(
    Result,
    st.lists(blocks, max_size=4).map(tuple),
    json_values(clean_text),
    st.booleans(),
    st.dictionaries(clean_text, json_values(clean_text), max_size=3),
)


def join_frame(message, attachments=()):
    return b"".join(frames.encode(message, attachments))


def frame_header(body):
    """Return a frame of any bytes, also of such as no message has."""
    return len(body).to_bytes(4, "big") + body


streams = results.map(lambda result: join_frame(*content_blocks.pack_result(7, result)))


def read_all(chunks):
    """Read the messages of a stream whose bytes arrive in these chunks."""

    async def read():
        reader = asyncio.StreamReader()

        async def feed():
            for chunk in chunks:
                reader.feed_data(chunk)
                await asyncio.sleep(0)  # lets the reader see this chunk alone
            reader.feed_eof()

        async def take():
            arrivals = []
            while (arrival := await read_message(reader)) is not None:
                arrivals.append(arrival)
            return arrivals

        _, arrivals = await asyncio.gather(feed(), take())
        return arrivals

    return asyncio.run(read())


def read_one(chunks):
    (arrival,) = read_all(chunks)
    return arrival


def send(message):
    return read_one(frames.encode(message))[0]
