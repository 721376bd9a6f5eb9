"""Makes audio that clients can play: encoded bytes as they are, samples as WAV.

Runs in the user's kernel, on the thread of the call. Audio that is too large for a result is
encoded when a client reads it, on a thread of the resource store. numpy is loaded only for samples.
"""

import importlib
import io
import numbers
import wave
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from mcp_notebook.content import Audio, Text
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.embedded import link_original
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.safe.foreign_code import run_guarded
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.magic_numbers import detect_audio_type
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.text.wording import format_size

MAX_COPY = 256 * 2**20
"""Bytes of the largest array of samples that is copied to be kept; faster than encoding it."""
MAX_RATE = 1_000_000
"""Maximum sample rate in Hz."""
_CHANNELS = 2
_SAMPLE_BYTES = 2
_HEADER_BYTES = 44
_CHUNK_ROWS = 2**18
"""Samples per channel that are converted at a time."""
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
        block: The author's block, with encoded bytes or samples.
        budget: The limits of the result; a sound may have as many bytes as a picture.
    """
    data: Any = block.data
    if is_instance(data, "IPython.lib.display.Audio"):
        block = replace(block, mime_type=data.mimetype or block.mime_type)
        data = data.data
    try:
        if isinstance(data, (bytes, bytearray, memoryview)):
            return _render_encoded(replace(block, data=bytes(data), rate=None), budget)
        return _render_samples(block, data, budget)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        return [Piece(Text(f"[{error}]"))]


def encode_wav(samples: Any, rate: float) -> tuple[bytes, str]:
    """Encode samples as WAV.

    Args:
        samples: A numpy array of one or two channels, in rows or columns.
        rate: Samples per second.

    Returns:
        A WAV file with 16 bits per sample, and a note if the samples were too loud.
    """
    columns = _to_columns(samples)
    to_int16, note = _choose_conversion(columns)
    with io.BytesIO() as buffer:
        with wave.open(buffer, "wb") as file:
            file.setnchannels(columns.shape[1])
            file.setsampwidth(_SAMPLE_BYTES)
            file.setframerate(round(rate))
            file.setnframes(columns.shape[0])
            for part in _iterate_chunks(columns):
                file.writeframesraw(to_int16(part).astype("<i2").tobytes())
        return buffer.getvalue(), note


def _render_encoded(block: Audio, budget: Budget) -> list[Piece]:
    data = block.data
    detected = detect_audio_type(data)
    # Trust a type that we do not know, but not WAV, which is only the default of `Audio`.
    if detected is None and (not data or block.mime_type in ("", Audio.mime_type)):
        beginning = data[:8].hex(" ") or "nothing"
        raise ValueError(
            f"{len(data):,} bytes beginning with {beginning} are not audio in a known format: give "
            "WAV, MP3, Ogg, FLAC or M4A, or samples as a numpy array with their `rate`."
        )
    mime_type = detected or block.mime_type
    if len(data) <= budget.picture_bytes:
        return [Piece(replace(block, mime_type=mime_type))]
    what = f"The audio ({mime_type}, {format_size(len(data))})"
    return _link_sound(what, mime_type, lambda: data, (len(data), len(data)), budget)


def _render_samples(block: Audio, data: Any, budget: Budget) -> list[Piece]:
    samples = _to_array(data)
    rate = _check_rate(block.rate)
    columns = _to_columns(samples)
    size = columns.size * _SAMPLE_BYTES + _HEADER_BYTES
    if size <= budget.picture_bytes:
        data, note = encode_wav(samples, rate)
        audio = replace(block, data=data, mime_type="audio/wav", rate=None)
        return [Piece(audio), Piece(Text(note))] if note else [Piece(audio)]
    seconds = columns.shape[0] / rate
    what = f"The audio (audio/wav, {seconds:,.1f} s at {rate:g} Hz, {format_size(size)})"
    # A view keeps its whole array alive, and the next call may change it.
    original = samples.copy() if samples.nbytes <= MAX_COPY else samples
    encode = partial(_encode_original, original, rate)
    return _link_sound(what, "audio/wav", encode, (size, samples.nbytes), budget)


def _encode_original(samples: Any, rate: float) -> bytes:
    data, _ = encode_wav(samples, rate)
    return data


def _link_sound(
    what: str, mime_type: str, content: Callable[[], bytes], sizes: tuple[int, int], budget: Budget
) -> list[Piece]:
    size, cost = sizes
    file_format = FileFormat(_EXTENSIONS.get(mime_type, ""), mime_type, content, size)
    return link_original(what, Original("sound", what, (file_format,), cost), budget)


def _check_rate(rate: Any) -> float:
    is_number = isinstance(rate, numbers.Real) and not isinstance(rate, bool)
    if not is_number or not 1 <= rate <= MAX_RATE:
        problem = "is missing" if rate is None else f"cannot be {str(rate)[:80]}"
        raise ValueError(
            f"The `rate` of audio samples {problem}: write `Audio(samples, rate=44_100)`, "
            f"samples per second, from 1 to {MAX_RATE:,}."
        )
    return float(rate)


def _to_array(data: Any) -> Any:
    name = type(data).__name__
    if isinstance(data, str):
        raise TypeError("Audio(data) takes no file name: return a `Path`.")

    def refuse(error: BaseException) -> NoReturn:
        if isinstance(error, ImportError):
            raise TypeError("Audio samples need numpy: install it.") from None
        raise ValueError(f"No audio can be made of a {name}: {describe_error(error)}.") from None

    array = run_guarded(lambda: importlib.import_module("numpy").asarray(data), refuse)
    if array.dtype.kind not in "iuf":
        what = name if array.dtype.kind == "O" else f"{name} of {array.dtype}"
        raise TypeError(
            f"No audio can be made of a {what}: give encoded bytes, or samples that are floats "
            "from -1 to 1 or integers."
        )
    return array


def _to_columns(array: Any) -> Any:
    """Return the samples with one column per channel."""
    shape = array.shape
    columns = array.reshape(-1, 1) if array.ndim == 1 else array
    if columns.ndim == _CHANNELS and columns.shape[1] > _CHANNELS >= columns.shape[0]:
        columns = columns.T
    if columns.ndim != 2 or not 1 <= columns.shape[1] <= _CHANNELS:  # noqa: PLR2004 - a table
        raise ValueError(
            f"Audio samples of shape {shape} cannot be played: their shape must be (n,), (n, 2) "
            "or (2, n)."
        )
    if not columns.shape[0]:
        raise ValueError("The audio has no samples.")
    return columns


def _choose_conversion(columns: Any) -> tuple[Callable[[Any], Any], str]:
    """Return a function that converts samples to 16-bit integers, and a note."""
    kind, bits = columns.dtype.kind, columns.dtype.itemsize * 8
    if kind == "f":
        return _convert_floats(columns)
    if bits == 64:  # noqa: PLR2004 - numpy's default for Python integers
        lowest, highest = int(columns.min()), int(columns.max())
        bits = 16 if lowest >= -(2**15) and highest < 2**15 else 32
        if not (lowest >= -(2**31) and highest < 2**31):
            raise ValueError("Integer samples of audio have at most 32 bits.")
        kind = "i"
    middle = 2 ** (bits - 1) if kind == "u" else 0
    up, down = max(16 - bits, 0), max(bits - 16, 0)
    return lambda part: (part.astype("i8") - middle) << up >> down, ""


def _convert_floats(columns: Any) -> tuple[Callable[[Any], Any], str]:
    numpy = importlib.import_module("numpy")

    def fill_gaps(part: Any) -> Any:
        return numpy.nan_to_num(part.astype("f8"), nan=0.0, posinf=1.0, neginf=-1.0)

    peak = max(float(abs(fill_gaps(part)).max()) for part in _iterate_chunks(columns))
    factor = 32_767 / max(peak, 1)
    note = f"The audio was made quieter: its samples reach {peak:.3g}, above the maximum of 1."
    return lambda part: numpy.rint(fill_gaps(part) * factor), note if peak > 1 else ""


def _iterate_chunks(columns: Any) -> Iterator[Any]:
    # Conversion takes up to eight times the memory of the samples.
    return (columns[start : start + _CHUNK_ROWS] for start in range(0, len(columns), _CHUNK_ROWS))
