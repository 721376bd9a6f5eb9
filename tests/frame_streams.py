"""Reading the frames of a link from an asyncio stream, as an end of it in a test does."""

import asyncio

from mcp_notebook.wire import frames


async def read_message(reader: asyncio.StreamReader) -> frames.Frame | None:
    """Return the next frame; None at the end of the stream, also when it ends within a frame."""
    parser, frame = frames.FrameParser(), None
    try:
        while frame is None and (piece := await reader.read(parser.missing)):
            frame = parser.feed(piece)
    except ConnectionError:
        return None
    return frame
