"""Sounds as bytes that clients can play: recognised, or made of samples.

Runs in the user's kernel, on the thread of the call; a sound that is too large for a result is
encoded when a client reads it, on the thread of who reads. numpy is loaded only when an author
gives samples. Sounds within displays come through `kernel.results.displays`, files through
`kernel.results.files`.
"""

import importlib
import io
import numbers
import wave
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from mcp_notebook.content import Audio, Text
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.embedded import format_size, link_original
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.safe.magic_numbers import detect_audio_type
from mcp_notebook.kernel.safe.text import describe_error, is_instance

MAX_COPY = 256 * 2**20
"""Bytes of samples that are copied to be kept, in a small part of the time of encoding them."""
MAX_RATE = 1_000_000
"""Samples per second."""
_CHANNELS = 2
_SAMPLE = 2  # bytes
_HEADER = 44  # bytes
_PART = 2**18  # samples that are converted at a time
_EXTENSIONS = {
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/flac": ".flac",
    "audio/mp4": ".m4a",
}


def render_audio(block: Audio, budget: Budget) -> list[Piece]:
    """Make blocks of a sound: itself, or a sentence and a link where it is too large.

    Args:
        block: Holds bytes or samples.
        budget: A sound may have as many bytes as a picture.
    """
    data: Any = block.data
    if is_instance(data, "IPython.lib.display.Audio"):
        block = replace(block, mime_type=data.mimetype or block.mime_type)
        data = data.data
    try:
        if isinstance(data, (bytes, bytearray, memoryview)):
            return _encoded(replace(block, data=bytes(data), rate=None), budget)
        return _sampled(block, data, budget)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        return [Piece(Text(f"[{error}]"))]


def encode_wav(samples: Any, rate: float) -> tuple[bytes, str]:
    """Encode samples.

    Args:
        samples: A numpy array of one or two channels, in rows or columns.
        rate: Samples per second.

    Returns:
        A WAV file of 16 bits a sample, and a note if samples were louder than can be.
    """
    columns = _columns(samples)
    levels, note = _levels(columns)
    with io.BytesIO() as buffer:
        with wave.open(buffer, "wb") as file:
            file.setnchannels(columns.shape[1])
            file.setsampwidth(_SAMPLE)
            file.setframerate(round(rate))
            file.setnframes(columns.shape[0])
            for part in _parts(columns):
                file.writeframesraw(levels(part).astype("<i2").tobytes())
        return buffer.getvalue(), note


def _encoded(block: Audio, budget: Budget) -> list[Piece]:
    data = block.data
    known = detect_audio_type(data)
    # Of a type that we do not know, we believe its author; but no WAV is one by its default.
    if known is None and (not data or block.mime_type in ("", Audio.mime_type)):
        beginning = data[:8].hex(" ") or "nothing"
        raise ValueError(
            f"{len(data):,} bytes beginning with {beginning} are no sound: give WAV, MP3, Ogg, "
            "FLAC or M4A, or samples as a numpy array, with their `rate`."
        )
    mime_type = known or block.mime_type
    if len(data) <= budget.picture_bytes:
        return [Piece(replace(block, mime_type=mime_type))]
    what = f"The sound ({mime_type}, {format_size(len(data))})"
    return _link(what, mime_type, lambda: data, (len(data), len(data)), budget)


def _sampled(block: Audio, data: Any, budget: Budget) -> list[Piece]:
    samples = _array(data)
    rate = _rate(block.rate)
    columns = _columns(samples)
    size = columns.size * _SAMPLE + _HEADER
    if size <= budget.picture_bytes:
        made, note = encode_wav(samples, rate)
        sent = replace(block, data=made, mime_type="audio/wav", rate=None)
        return [Piece(sent), Piece(Text(note))] if note else [Piece(sent)]
    seconds = columns.shape[0] / rate
    what = f"The sound (audio/wav, {seconds:,.1f} s at {rate:g} Hz, {format_size(size)})"
    # A view would hold all of its array, and the tool may write on it in its next call.
    kept = samples.copy() if samples.nbytes <= MAX_COPY else samples
    made_later = lambda: encode_wav(kept, rate)[0]  # noqa: E731 - a name for what comes later
    return _link(what, "audio/wav", made_later, (size, samples.nbytes), budget)


def _link(
    what: str, mime_type: str, content: Callable[[], bytes], sizes: tuple[int, int], budget: Budget
) -> list[Piece]:
    size, cost = sizes
    form = FileFormat(_EXTENSIONS.get(mime_type, ""), mime_type, content, size)
    return link_original(what, Original("sound", what, (form,), cost), budget)


def _rate(given: Any) -> float:
    usable = isinstance(given, numbers.Real) and not isinstance(given, bool)
    if not usable or not 1 <= given <= MAX_RATE:
        said = "is missing" if given is None else f"cannot be {str(given)[:80]}"
        raise ValueError(
            f"The `rate` of a sound's samples {said}: write `Audio(samples, rate=44_100)`, samples "
            f"per second, from 1 to {MAX_RATE:,}."
        )
    return float(given)


def _array(data: Any) -> Any:
    name = type(data).__name__
    if isinstance(data, str):
        raise TypeError("Audio(data) takes no name of a file: return a `Path`.")
    try:
        numpy = importlib.import_module("numpy")
        array = numpy.asarray(data)
    except ImportError:
        raise TypeError("To make a sound of samples, numpy is needed: install it.") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the object's own code
        raise ValueError(f"No sound can be made of a {name}: {describe_error(error)}.") from None
    if array.dtype.kind not in "iuf":
        of = name if array.dtype.kind == "O" else f"{name} of {array.dtype}"
        raise TypeError(
            f"No sound can be made of a {of}: give encoded bytes, or samples that are floats from "
            "-1 to 1 or integers."
        )
    return array


def _columns(array: Any) -> Any:
    """Return the samples with a column for each channel."""
    shape = array.shape
    columns = array.reshape(-1, 1) if array.ndim == 1 else array
    if columns.ndim == _CHANNELS and columns.shape[1] > _CHANNELS >= columns.shape[0]:
        columns = columns.T
    if columns.ndim != 2 or not 1 <= columns.shape[1] <= _CHANNELS:  # noqa: PLR2004 - a table
        raise ValueError(
            f"A sound of samples in the shape {shape}: one channel or two can be played, "
            "(n,), (n, 2) or (2, n)."
        )
    if not columns.shape[0]:
        raise ValueError("A sound without samples has nothing to hear.")
    return columns


def _levels(columns: Any) -> tuple[Callable[[Any], Any], str]:
    """Return what makes whole numbers of 16 bits of some of the samples, and a note."""
    kind, bits = columns.dtype.kind, columns.dtype.itemsize * 8
    if kind == "f":
        return _float_levels(columns)
    if bits == 64:  # noqa: PLR2004 - Python's own integers
        lowest, highest = int(columns.min()), int(columns.max())
        bits = 16 if lowest >= -(2**15) and highest < 2**15 else 32
        if not (lowest >= -(2**31) and highest < 2**31):
            raise ValueError("Samples of a sound that are integers have at most 32 bits.")
        kind = "i"
    middle = 2 ** (bits - 1) if kind == "u" else 0
    up, down = max(16 - bits, 0), max(bits - 16, 0)
    return lambda part: (part.astype("i8") - middle) << up >> down, ""


def _float_levels(columns: Any) -> tuple[Callable[[Any], Any], str]:
    numpy = importlib.import_module("numpy")

    def known(part: Any) -> Any:
        return numpy.nan_to_num(part.astype("f8"), nan=0.0, posinf=1.0, neginf=-1.0)

    peak = max(float(abs(known(part)).max()) for part in _parts(columns))
    factor = 32_767 / max(peak, 1)
    note = f"The sound was made quieter: its samples go to {peak:.3g}, and 1 is the loudest."
    return lambda part: numpy.rint(known(part) * factor), note if peak > 1 else ""


def _parts(columns: Any) -> Iterator[Any]:
    # Samples take up to eight times their room while they are converted.
    return (columns[start : start + _PART] for start in range(0, len(columns), _PART))
