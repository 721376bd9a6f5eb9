"""Measures how well models get on with tools, beside FastMCP.

``python tests/evals/run_evals.py`` prints the figures and what went wrong. With ``--keep``, it
writes ``docs/measurements/evals.json``, of which ``docs/make_evals.py`` makes a page. FastMCP is
installed into an environment of its own in the user's cache; where that fails, it is left out.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS), str(TESTS / "benchmarks")]  # for a run outside of pytest

from call_repair import Outcome, repair  # noqa: E402 - found through the path above
from comparison import environments  # noqa: E402
from comparison.environments import python_of, versions_of  # noqa: E402
from eval_servers import HERE, EvalServer, serve_fastmcp, serve_notebook  # noqa: E402
from measure_results import keep_common, write_reprs, write_results  # noqa: E402
from measure_results import measure as measure_texts  # noqa: E402
from search_queries import QUERIES  # noqa: E402
from tokens import VOCABULARY, count_tokens, load_tokenizer  # noqa: E402
from wrong_calls import WRONG_CALLS  # noqa: E402

from mcp_notebook.check.schemas import PROVIDERS  # noqa: E402

PLACE = TESTS.parent / "docs" / "measurements" / "evals.json"
FIRST = 3
"""Results of a search that a model looks at."""


async def measure(server: EvalServer) -> dict[str, Any]:
    """Return a server's figures, with the cases behind them."""
    entries = await server.list_entries()
    outcomes = [await repair(wrong, server.call) for wrong in WRONG_CALLS]
    found = [(query, tool, (await server.find(query))[:FIRST]) for query, tool in QUERIES]
    return {
        "entries": measure_entries(entries),
        "refused": measure_refusals(entries),
        "wrong_calls": measure_outcomes(outcomes),
        "queries": {
            "found": sum(tool in names for _, tool, names in found),
            "missed": [f"{query} -> {tool}" for query, tool, names in found if tool not in names],
        },
    }


def measure_entries(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what a model reads of a tool: its name, description and parameters."""
    texts = [
        (
            entry["name"],
            entry.get("description", ""),
            json.dumps(entry["inputSchema"], ensure_ascii=False, separators=(",", ":")),
        )
        for entry in entries
    ]
    characters = [sum(map(len, parts)) for parts in texts]
    tokens = [sum(map(count_tokens, parts)) for parts in texts]
    return {
        "tools": len(entries),
        "characters": round(statistics.mean(characters)),
        "tokens": round(statistics.mean(tokens), 1),
    }


def measure_refusals(entries: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the tools whose schemas each provider refuses, with the first reason."""
    refused: dict[str, list[str]] = {}
    for provider, find_refusals in PROVIDERS.items():
        refused[provider] = []
        for entry in entries:
            first = next(find_refusals(entry["inputSchema"]), None)
            if first is not None:
                refused[provider].append(f"{entry['name']}: {first.place} {first.reason}")
    return refused


def measure_outcomes(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return how many wrong calls end as they were meant, by the messages that it takes."""
    kinds = Counter(outcome.wrong.kind for outcome in outcomes)
    good = Counter(outcome.wrong.kind for outcome in outcomes if outcome.is_understood)
    first = [outcome.messages[0] for outcome in outcomes if outcome.messages]
    return {
        "kinds": {kind: [good[kind], number] for kind, number in kinds.items()},
        "at_once": sum(each.is_understood and not each.messages for each in outcomes),
        "after_one_message": sum(
            each.is_understood and len(each.messages) == 1 for each in outcomes
        ),
        "after_more": sum(each.is_understood and len(each.messages) > 1 for each in outcomes),
        "misunderstood": sum(each.is_misunderstood for each in outcomes),
        "never": sum(not each.is_understood and not each.is_misunderstood for each in outcomes),
        "message_characters": round(statistics.mean(map(len, first))),
        "message_tokens": round(statistics.mean(map(count_tokens, first)), 1),
        "failures": [
            f"{each.wrong.tool} {json.dumps(each.wrong.sent, ensure_ascii=False)}: "
            f"{' / '.join(' '.join(text.split()) for text in each.messages) or 'misunderstood'}"
            for each in outcomes
            if not each.is_understood
        ],
    }


def measure_results(texts: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return what a model reads of the results that all have, and what that answers, by origin."""
    return {origin: _measure_results(each) for origin, each in keep_common(texts).items()}


def _measure_results(texts: Mapping[str, str]) -> dict[str, Any]:
    figures = measure_texts(texts)
    return {
        "results": figures.results,
        "questions": figures.questions,
        "answered": figures.answered,
        "characters": figures.characters,
        "tokens": figures.tokens,
        "unanswered": list(figures.unanswered),
        "sizes": {name: len(texts[name]) for name in sorted(texts)},
    }


async def run() -> dict[str, Any]:
    """Measure both servers, one after the other, and the plain reprs of results."""
    measured: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "tokenizer": None if load_tokenizer() is None else f"tiktoken, {VOCABULARY}",
        "versions": {"mcp-notebook": version("mcp-notebook")},
        "servers": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        async with serve_notebook(Path(folder)) as server:
            measured["servers"][server.name] = await measure(server)
    texts = {"mcp-notebook": write_results(), "repr()": write_reprs()}
    measured["results"] = measure_results(texts)
    try:
        python = python_of("evals")
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"FastMCP is left out, because it cannot be installed: {error}", file=sys.stderr)
        return measured
    async with serve_fastmcp(python) as server:
        measured["servers"][server.name] = await measure(server)
        measured["versions"]["FastMCP"] = versions_of("evals")["fastmcp"]
    done = environments.run([python, str(HERE / "fastmcp_results.py")])
    measured["results"] = measure_results(texts | {"FastMCP": json.loads(done)})
    return measured


def main() -> None:
    """Print the figures, and keep them if asked to."""
    measured = asyncio.run(run())
    text = json.dumps(measured, indent=1, ensure_ascii=False) + "\n"
    print(text)
    if "--keep" in sys.argv:
        PLACE.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
