"""Measures what a model reads of the results of the pool, and which questions that answers.

The text of a result is what a client gets that is not known to read links.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE)]

from results_pool import QUESTIONS, Question, make_results  # noqa: E402 - found through the path


@dataclass(frozen=True)
class ResultFigures:
    """What a model reads of the results, and what it can answer."""

    results: int
    characters: int
    """Of all texts together."""
    tokens: int
    answered: int
    unanswered: tuple[str, ...]
    """The questions whose answers are not in the texts."""

    @property
    def questions(self) -> int:
        """How many questions there are."""
        return self.answered + len(self.unanswered)


def write_results() -> dict[str, str]:
    """Return the text of each result as mcp-notebook gives it to a model."""
    from IPython.core.formatters import DisplayFormatter

    from mcp_notebook.content import ResourceLink, Text
    from mcp_notebook.kernel.link.resource_store import ResourceStore
    from mcp_notebook.kernel.results.converter import Converter
    from mcp_notebook.settings.settings import Settings
    from mcp_notebook.wire.resource_uris import describe_links

    store = ResourceStore("0123456789abcdef", 2**30)
    converter = Converter(DisplayFormatter().format, Settings(), keep=store.keep)

    def write(value: Any) -> str:
        parts = []
        content = converter.make_result(value, ()).content
        for are_links, blocks in groupby(content, lambda block: isinstance(block, ResourceLink)):
            listed = list(blocks)
            if are_links:
                parts.append(describe_links(listed))
            else:
                parts += [block.text for block in listed if isinstance(block, Text)]
        return "\n\n".join(parts)

    return {name: write(value) for name, value in make_results().items()}


def write_reprs() -> dict[str, str]:
    """Return the plain repr of each result."""
    return {name: repr(value) for name, value in make_results().items()}


def keep_common(texts: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return the texts of those results that all have, by their origins."""
    common = sorted(set.intersection(*map(set, texts.values())))
    return {origin: {name: all_of[name] for name in common} for origin, all_of in texts.items()}


def measure(texts: Mapping[str, str]) -> ResultFigures:
    """Return the figures of texts by the names of their results."""
    asked = [question for question in QUESTIONS if question.result in texts]
    missed = [q for q in asked if not q.is_answered(texts[q.result])]
    return ResultFigures(
        results=len(texts),
        characters=sum(map(len, texts.values())),
        tokens=sum(map(_count_tokens, texts.values())),
        answered=len(asked) - len(missed),
        unanswered=tuple(map(_name, missed)),
    )


def _count_tokens(text: str) -> int:
    from tokens import count_tokens

    return count_tokens(text)


def _name(question: Question) -> str:
    return f"{question.result}: {question.text}"
