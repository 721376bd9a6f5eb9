"""Replaces base64 within texts: by the picture that it is, or by a line that says what to return.

Runs in the user's kernel, on the thread of the call. A model cannot see a picture in its letters,
and a plot has tens of thousands of them.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from mcp_notebook.content import Image, Text
from mcp_notebook.kernel.results.blocks import images
from mcp_notebook.kernel.results.blocks.author_blocks import render_encoded_image
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.piece import Piece, make_text_piece
from mcp_notebook.kernel.safe.magic_numbers import detect_audio_type

_SHORTEST = 200
"""Characters of base64 that are replaced; fewer may be a key or a hash."""
_MARKS = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi0": "application/pdf",
}
"""How base64 of pictures begins, and of files that are as large."""
_LETTER = "[A-Za-z0-9+/_-]"
_ENCODED = re.compile(
    r"(?P<markdown>!\[[^\]\n]{0,300}\]\(\s*)?"
    r"""(?P<html><img\b[^<>]{0,300}?\bsrc\s*=\s*\\?["']?)?"""
    r"""(?:data:(?P<type>[^\s,;"'()<>]{1,100})(?:;[^\s,"'()<>]{1,100})?;base64,\s*"""
    rf"|(?<!{_LETTER})(?=(?:{'|'.join(map(re.escape, _MARKS))})))"
    rf"(?P<data>(?:{_LETTER}{{60,}}+(?:\r?\n|\\n))*+{_LETTER}*+={{0,2}})"
    # Cut in the middle, as part of a value that was shortened:
    rf"(?P<gap>(?:\s|\\n)*\[\.\.\. [^\]]{{1,200}}\](?:\s|\\n)*{_LETTER}{{60,}}+={{0,2}})?"
    r"""(?(markdown)\s*(?:\\?"[^"\n]{0,300}"\s*)?\)?)"""
    r"""(?(html)\\?["']?[^<>]{0,300}>?)"""
)
"""Base64 in a data URL, or that begins with a mark; with the Markdown or HTML around it."""


def holds_encoded(text: str) -> bool:
    """Return whether a text may have base64 to replace."""
    return len(text) >= _SHORTEST and (";base64," in text or any(mark in text for mark in _MARKS))


def replace_encoded(pieces: Sequence[Piece], budget: Budget) -> list[Piece]:
    """Replace base64 in all texts; the pictures follow their text.

    Args:
        pieces: The pieces of a result.
        budget: The limits of the result.
    """
    replaced: list[Piece] = []
    number = 0
    for piece in pieces:
        if type(piece.block) is not Text or not holds_encoded(piece.block.text):
            replaced.append(piece)
            continue
        pictures: list[Piece] = []

        def take(match: re.Match[str], pictures: list[Piece] = pictures) -> str:
            nonlocal number
            encoded = match["data"]
            if len(encoded) < _SHORTEST:
                return match[0]
            data = b"" if match["gap"] else _decode(encoded)
            if images.is_image(data):
                made = render_encoded_image(data, budget)
                if isinstance(made[0].block, Image):
                    number += 1
                    pictures.extend(made)
                    return f"[picture {number}]"
            return _explain(match["type"] or detect_audio_type(data), encoded, match["gap"])

        text = _ENCODED.sub(take, piece.block.text)
        if not pictures or text.strip(" \n\"'`") != f"[picture {number}]":
            replaced.append(
                make_text_piece(text)
                if piece.is_raw
                else structs.replace(piece, block=replace(piece.block, text=text))
            )
        replaced += pictures
    return replaced


def _decode(encoded: str) -> bytes:
    letters = encoded.replace("\\n", "").translate({ord("-"): "+", ord("_"): "/"})
    letters = "".join(letters.split()).rstrip("=")
    try:
        return base64.b64decode(letters + "=" * (-len(letters) % 4))
    except (binascii.Error, ValueError):
        return b""


def _explain(mime_type: str | None, encoded: str, gap: str | None) -> str:
    known = (kind for mark, kind in _MARKS.items() if encoded.startswith(mark))
    kind = mime_type or next(known, "data")
    what = "return the figure or image itself, or `Image(bytes)`, to show it"
    if not kind.startswith("image/"):
        what = "return the bytes in `Audio` or `Resource` to send it"
    size = "" if gap else f", {len(encoded):,} characters"
    return f"[{kind} as base64{size}: {what}]"
