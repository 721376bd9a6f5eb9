"""Makes audio that clients can play, of encoded bytes.

Runs in the user's kernel, on the thread of the call. Samples are left to
``IPython.display.Audio(samples, rate=44_100)``, which encodes them.
"""

from dataclasses import replace
from typing import Any

from mcp_notebook.content import Audio, Text
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.embedded import link_original
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.magic_numbers import detect_audio_type
from mcp_notebook.text.wording import format_size

_EXTENSIONS = {
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/flac": ".flac",
    "audio/mp4": ".m4a",
}


def render_audio(block: Audio, budget: Budget) -> list[Piece]:
    """Render a sound as audio, or as a note and a link if it is too large.

    Args:
        block: The author's block, with encoded bytes or IPython's ``Audio``.
        budget: The limits of the result; a sound may have as many bytes as a picture.
    """
    data: Any = block.data
    if is_instance(data, "IPython.lib.display.Audio"):
        block = replace(block, mime_type=data.mimetype or block.mime_type)
        data = data.data
    detected = mime_type = None
    if isinstance(data, (bytes, bytearray, memoryview)):
        data = bytes(data)
        detected = detect_audio_type(data)
        # Trust a type that we do not know, but not WAV, which is only the default of `Audio`.
        mime_type = detected or (data and block.mime_type != Audio.mime_type and block.mime_type)
    if not mime_type:
        return [
            Piece(
                Text(
                    f"[{type(data).__name__} is not encoded audio: give the bytes of a WAV, MP3, "
                    "Ogg, FLAC or M4A file, return its `Path`, or return "
                    "`IPython.display.Audio(samples, rate=44_100)`.]"
                )
            )
        ]
    if len(data) <= budget.picture_bytes:
        return [Piece(replace(block, data=data, mime_type=mime_type))]
    what = f"The audio ({mime_type}, {format_size(len(data))})"
    extension = _EXTENSIONS.get(mime_type, "")
    file_format = FileFormat(extension, mime_type, lambda: data, len(data))
    return link_original(what, Original("sound", what, (file_format,), len(data)), budget)
