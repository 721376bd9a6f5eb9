"""Measures what a model reads of sixty results, and which questions that answers.

    python tests/evals/measure_results.py                     # mcp-notebook and the plain reprs
    python tests/evals/measure_results.py --fastmcp PYTHON    # and FastMCP, in another environment
    python tests/evals/measure_results.py --before CHECKOUT   # and another version of mcp-notebook

The environment of FastMCP needs the libraries of the pool, too. The text of a result is what a
client gets that is not known to read links.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
    largest: tuple[tuple[str, int], ...]
    """The results with the longest texts, and their characters."""

    @property
    def questions(self) -> int:
        """How many questions there are."""
        return self.answered + len(self.unanswered)


def write_results() -> dict[str, str]:
    """Return the text of each result as mcp-notebook gives it to a model."""
    from IPython.core.formatters import DisplayFormatter

    from mcp_notebook.bridge.server.protocol.result_forms import describe_links
    from mcp_notebook.content import ResourceLink, Text
    from mcp_notebook.kernel.link.resource_store import ResourceStore
    from mcp_notebook.kernel.results.converter import Converter
    from mcp_notebook.settings.settings import Settings

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
    longest = sorted(texts, key=lambda name: -len(texts[name]))[:8]
    return ResultFigures(
        results=len(texts),
        characters=sum(map(len, texts.values())),
        tokens=sum(map(_count_tokens, texts.values())),
        answered=len(asked) - len(missed),
        unanswered=tuple(map(_name, missed)),
        largest=tuple((name, len(texts[name])) for name in longest),
    )


def measure_here() -> dict[str, ResultFigures]:
    """Return the figures of mcp-notebook and of the plain reprs."""
    return {"mcp-notebook": measure(write_results()), "repr": measure(write_reprs())}


def _count_tokens(text: str) -> int:
    from mcp_notebook.check.cost import count_tokens

    return count_tokens(text)


def _name(question: Question) -> str:
    return f"{question.result}: {question.text}"


def _run(words: Sequence[str], checkout: str | None = None) -> dict[str, str]:
    env = os.environ | ({"PYTHONPATH": checkout} if checkout else {})
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    texts: dict[str, str] = json.loads(done.stdout)
    return texts


def main() -> None:
    """Print the figures side by side."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fastmcp", help="a Python with FastMCP")
    parser.add_argument("--before", help="a checkout of mcp-notebook")
    parser.add_argument("--texts", action="store_true", help="print the texts as JSON, no figures")
    options = parser.parse_args()
    if options.texts:
        print(json.dumps(write_results()))
        return
    texts = {"mcp-notebook": write_results(), "repr": write_reprs()}
    if options.before:
        texts["before"] = _run([sys.executable, __file__, "--texts"], options.before)
    if options.fastmcp:
        texts["FastMCP"] = _run([options.fastmcp, str(HERE / "fastmcp_results.py")])
    texts = keep_common(texts)
    for name, by_result in texts.items():
        figures = measure(by_result)
        print(
            f"{name}: {figures.results} results, {figures.characters:,} characters, "
            f"{figures.tokens:,} tokens; {figures.answered} of {figures.questions} questions"
        )
        print(f"  largest: {', '.join(f'{each} {size:,}' for each, size in figures.largest)}")
        print("  unanswered:", *figures.unanswered, sep="\n    ")
    if options.before:
        ours = texts["mcp-notebook"]
        for question in QUESTIONS:
            result = question.result
            was_answered = result in ours and question.is_answered(texts["before"][result])
            if was_answered and not question.is_answered(ours[result]):
                print(f"lost: {_name(question)}")


if __name__ == "__main__":
    main()
