"""Texts that are too long for a result: their ends, and a link to the whole.

Runs in the user's kernel, on the thread of the call. A `Draft` is a text on its way through the
conversion; `truncate_texts` is what becomes of all texts of a result at its end
(`kernel.results.blocks.budget`).
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import islice
from typing import Any

from mcp_notebook.content import Annotated, ContentBlock, ResourceLink, Text
from mcp_notebook.kernel.results.blocks.originals import (
    FileFormat,
    Original,
    OriginalSink,
    discard_original,
)
from mcp_notebook.kernel.safe.deadline import DeadlineExceeded, run_bounded
from mcp_notebook.kernel.safe.text import clean_text, compute_share, cut_text, is_sendable

MAX_LINKS = 10
"""Texts of one result whose whole is kept: the longest ones."""
MAX_REPEATED = 5_000
"""Characters of a text for clients that get the same as structured content."""
CLEANED_WHOLE = 1_000_000
"""Characters of a text that is cleaned before it is cut: codes may be most of it."""
LINK = 200
"""Characters of a link, about."""
_NOT_KEPT = ", and too large to be kept"
_IN_DATA = ": the structured content has all of it"
_SAMPLES = (0, 5, 5, 20, 200)
"""Parts of a value that are measured, by the levels that are left: 100,000 of all together."""
_UNKNOWN = 2**20
"""Bytes of a value that fails to say what it holds."""
_BUILT_IN = frozenset({str, bytes, bytearray, int, float, list, tuple, dict, set, frozenset})


@dataclass(frozen=True)
class Draft(Text):
    """A text of which more is known than clients are told."""

    original: Original | None = field(default=None, kw_only=True)
    """What is kept if the text is cut; None: the text itself."""
    partial: bool = field(default=False, kw_only=True)
    """It is a part only already: the original is kept even if it is not cut."""
    raw: bool = field(default=False, kw_only=True)
    """It has not been cleaned: what is kept will be."""
    repeats: bool = field(default=False, kw_only=True)
    """It says what the structured content says."""
    linked: bool = field(default=False, kw_only=True)
    """Links to the whole of it follow, or nothing of it can be read: it gets no other link."""


def draft(text: str, extension: str = ".txt", mime_type: str = "text/plain") -> Draft:
    """Make a text of any size fit to be sent, without a copy of one that will be cut anyway.

    Args:
        text: Not cleaned yet.
        extension: Of the file that the whole of it would be.
        mime_type: Of the same.
    """
    raw = str.__len__(text) > CLEANED_WHOLE
    text = str.__str__(text) if raw else clean_text(text)
    return Draft(text, raw=raw, original=describe_text_original(text, extension, mime_type))


def repeating(block: Text) -> Text:
    """Return a text that gives way where structured content says the same."""
    made = block if isinstance(block, Draft) else Draft(block.text)
    return replace(made, repeats=True)


def is_plain(block: Text) -> bool:
    """Tell whether a text has nothing but its text, so that it can be joined with another."""
    about = (block.audience, block.priority, block.last_modified, block.brief)
    if about != ((), None, None, None):
        return False
    return not isinstance(block, Draft) or not (
        block.partial or block.raw or block.repeats or block.linked
    )


def describe_text_original(
    text: str, extension: str = ".txt", mime_type: str = "text/plain", what: str = "text"
) -> Original:
    """Describe the whole of a text; it is not copied, and cleaned when it is read."""
    return Original(
        name=what.lower(),
        title=f"The whole {what}: {len(text):,} characters",
        formats=(FileFormat(extension, mime_type, lambda: clean_text(text)),),
        cost=sys.getsizeof(text),
    )


def describe_data_original(value: Any, make: Callable[[], str]) -> Original:
    """Describe the JSON of a value: a reference to it is kept, which the tool may change later.

    Args:
        value: What is kept.
        make: Makes the JSON text.
    """
    form = FileFormat(".json", "application/json", make)
    title = "The whole value as JSON, as it is when it is read"
    return Original("value", title, (form,), estimate_memory(value))


def truncate_texts(
    blocks: Sequence[ContentBlock], chars: int, keep: OriginalSink
) -> list[ContentBlock]:
    """Cut the longest texts of a result, so that all of them keep to a number of characters.

    Links count, too. After each text that was cut, or was a part only, comes a link to the whole.

    Args:
        blocks: Of the result.
        chars: Characters of its texts and links.
        keep: Takes the originals.
    """
    texts = [block for block in blocks if isinstance(block, Text)]
    unlinked = [text for text in texts if not _is_linked(text)]
    room = chars - sum(_link_size(link) for link in blocks if isinstance(link, ResourceLink))
    lengths = [len(block.text) for block in texts]
    room = max(room, chars // 2)
    share = compute_share(lengths, room)
    links = 0
    if keep is not discard_original:
        most = min(MAX_LINKS, max(room, 0) // (2 * LINK))
        for _ in range(2):  # the room that links take may make more texts too long
            parted = sum(len(text.text) > share or _is_partial(text) for text in unlinked)
            links = min(parted, most)
            share = compute_share(lengths, room - links * LINK)
    longest = sorted(filter(_is_partial, unlinked), key=_length, reverse=True)
    longest += sorted(
        (text for text in unlinked if len(text.text) > share and not _is_partial(text)),
        key=_length,
        reverse=True,
    )
    linked = {id(text) for text in longest[:links]}
    made: list[ContentBlock] = []
    for block in blocks:
        if isinstance(block, Text):
            made += _fitted(block, share, keep if id(block) in linked else discard_original)
        else:
            made.append(block)
    return made


def estimate_memory(value: Any) -> int:
    """Return about how many bytes of memory a value holds, by a sample of its parts."""
    try:
        return _memory_of(value, len(_SAMPLES) - 1)
    except DeadlineExceeded:
        return _UNKNOWN


def _fitted(block: Text, share: int, keep: OriginalSink) -> list[ContentBlock]:
    info = block if isinstance(block, Draft) else Draft(block.text)
    links: tuple[ResourceLink, ...] = ()
    is_cut = len(block.text) > share
    note = ""
    if (is_cut or info.partial) and keep is not discard_original:
        links = keep(info.original or describe_text_original(block.text))
        note = "" if links else _NOT_KEPT
    text = cut_text(block.text, share, note, cleaned=not info.raw)
    if not is_sendable(text):
        return []
    brief = cut_text(text, MAX_REPEATED, _IN_DATA) if info.repeats else None
    about = {item.name: getattr(block, item.name) for item in fields(Annotated)}
    about["brief"] = block.brief if brief is None or brief == text else brief
    return [Text(text, **about), *links]


def _is_partial(block: Text) -> bool:
    return isinstance(block, Draft) and block.partial


def _is_linked(block: Text) -> bool:
    return isinstance(block, Draft) and block.linked


def _length(block: Text) -> int:
    return len(block.text)


def _link_size(link: ResourceLink) -> int:
    return sum(map(len, (link.uri, link.name, link.title or "", link.description or "")))


def _memory_of(value: Any, depth: int) -> int:
    if type(value) in _BUILT_IN:
        return _measured(value, depth)
    try:
        return run_bounded(lambda value: _measured(value, depth), value)
    except Exception:  # noqa: BLE001 - the value's own code
        return _UNKNOWN


def _measured(value: Any, depth: int) -> int:
    size = sys.getsizeof(value, 64)
    if depth == 0 or isinstance(value, (str, bytes, bytearray, int, float)):
        return size
    most = _SAMPLES[depth]
    buffer = getattr(value, "nbytes", None)
    if isinstance(buffer, int):
        return size + buffer
    if isinstance(value, Mapping):
        parts: Any = value.items()
        count = len(value)
    elif isinstance(value, (list, tuple)):
        count = len(value)
        parts = value[:: count // most + 1]  # from all of it: what comes first may be its head
    elif isinstance(value, (set, frozenset)):
        parts = value
        count = len(value)
    elif is_dataclass(value) or hasattr(value, "__dict__"):
        parts = list(vars(value).values()) if hasattr(value, "__dict__") else []
        count = len(parts)
    else:
        return size
    sample = [_memory_of(part, depth - 1) for part in islice(parts, most)]
    return size + (sum(sample) * count // len(sample) if sample else 0)
