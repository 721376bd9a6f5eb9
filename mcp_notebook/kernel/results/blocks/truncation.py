"""Truncates texts that are too long for a result: keeps both ends, and links to the whole.

Of many cut texts, the longest have a link each, and the others share one.

Runs in the user's kernel, on the thread of the call, as the last step of a conversion.
"""

from collections.abc import Sequence
from dataclasses import replace

from mcp_notebook.content import ContentBlock, ResourceLink, Text
from mcp_notebook.kernel.results.blocks.originals import (
    FileFormat,
    Original,
    OriginalSink,
    discard_original,
)
from mcp_notebook.kernel.results.blocks.piece import (
    NOT_KEPT,
    Piece,
    describe_text_original,
)
from mcp_notebook.kernel.safe.text import compute_share, cut_text, is_sendable

MAX_LINKS = 10
"""Maximum links to whole texts in a result."""
LINK = 200
"""Approximate characters of a link."""


def truncate_texts(pieces: Sequence[Piece], chars: int, keep: OriginalSink) -> list[ContentBlock]:
    """Cut the longest texts of a result, so that all texts together fit.

    Links count as text. A link to the whole follows each text that is cut or partial. With too many
    of these, the last link leads to all others.

    Args:
        pieces: The pieces of the result.
        chars: Maximum characters of texts and links; one link is added even if it does not fit.
        keep: Keeps the originals.
    """
    texts = [piece for piece in pieces if isinstance(piece.block, Text)]
    links = [piece.block for piece in pieces if isinstance(piece.block, ResourceLink)]
    room = max(chars - sum(map(_count_link_chars, links)), chars // 2)
    share, count = _allot(texts, room, can_link=keep is not discard_original)
    linked, others = _choose_linked(texts, share, count)
    blocks: list[ContentBlock] = []
    for piece in pieces:
        if isinstance(piece.block, Text):
            sink = keep if id(piece) in linked else discard_original
            blocks += _fit_text(piece, piece.block, share, sink)
        else:
            blocks.append(piece.block)
    if others and keep is not discard_original:
        blocks += link_together(others, "other shortened texts", keep)
    return blocks


def link_together(pieces: Sequence[Piece], what: str, keep: OriginalSink) -> list[ContentBlock]:
    """Keep several whole texts as one original; return the link to it, or a note why not.

    Args:
        pieces: The texts.
        what: What they are, in words.
        keep: Keeps the original.
    """
    originals = [piece.original or describe_text_original(piece.text) for piece in pieces]

    def write() -> str:
        wholes = (original.formats[0].content() for original in originals)
        return "\n\n".join(whole for whole in wholes if isinstance(whole, str))

    what = f"{len(pieces):,} {what}"
    cost = sum(original.cost for original in originals)
    form = FileFormat(".txt", "text/plain", write)
    links = keep(Original("texts", f"The whole of {what}", (form,), cost))
    if not links and keep is not discard_original:
        return [Text(f"[The whole of {what} is too large to be kept.]")]
    return [*links]


def _needs_link(piece: Piece, share: int) -> bool:
    """Return whether less than the whole of a text is sent and nothing else links to the whole."""
    return not piece.has_links and (piece.is_partial or len(piece.text) > share)


def _allot(texts: Sequence[Piece], room: int, *, can_link: bool) -> tuple[int, int]:
    """Return the characters that each text may have, and how many texts get a link."""
    lengths = [len(piece.text) for piece in texts]
    share, count = compute_share(lengths, room), 0
    if can_link:
        most = min(MAX_LINKS, max(room // (2 * LINK), 1))
        for _ in range(2):  # links take room, which may make more texts too long
            count = min(sum(_needs_link(piece, share) for piece in texts), most)
            share = compute_share(lengths, max(room - count * LINK, room // 2))
    return share, count


def _choose_linked(texts: Sequence[Piece], share: int, count: int) -> tuple[set[int], list[Piece]]:
    """Return the ids of the texts that get their own link, and those that share one of `count`.

    Partial texts come first, then the longest.
    """
    candidates = [piece for piece in texts if _needs_link(piece, share)]
    ordered = sorted(candidates, key=lambda piece: (not piece.is_partial, -len(piece.text)))
    own = {id(piece) for piece in ordered[: count if len(ordered) <= count else count - 1]}
    return own, [piece for piece in candidates if id(piece) not in own]


def _fit_text(piece: Piece, block: Text, share: int, keep: OriginalSink) -> list[ContentBlock]:
    links: tuple[ResourceLink, ...] = ()
    is_cut = len(block.text) > share
    note = ""
    if (is_cut or piece.is_partial) and keep is not discard_original:
        links = keep(piece.original or describe_text_original(block.text))
        note = "" if links else NOT_KEPT
    text = cut_text(block.text, share, note, whole=piece.whole, is_clean=not piece.is_raw)
    if not is_sendable(text):
        return [*links]
    return [block if text is block.text else replace(block, text=text), *links]


def _count_link_chars(link: ResourceLink) -> int:
    return sum(map(len, (link.uri, link.name, link.title or "", link.description or "")))
