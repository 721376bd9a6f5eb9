"""Writes the tables of evals in ``docs/operate/performance.md``: ``python docs/make_evals.py``.

They are made of what ``python tests/evals/run_evals.py --keep`` has written into
``docs/measurements/evals.json``.
"""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PAGE = DOCS / "operate" / "performance.md"
FIGURES = DOCS / "measurements" / "evals.json"
BEGIN, END = "<!-- Written by docs/make_evals.py: {} -->", "<!-- End -->"


def make_summary(run: Mapping[str, Any]) -> str:
    """Return the table of all figures, in Markdown."""
    first = next(iter(run["servers"].values()))
    calls = sum(number for _, number in first["wrong_calls"]["kinds"].values())
    queries = first["queries"]["found"] + len(first["queries"]["missed"])
    rows: list[tuple[str, Callable[[Any], object]]] = [
        ("Tokens of a tool's entry, mean", lambda each: each["entries"]["tokens"]),
        ("Characters of a tool's entry, mean", lambda each: each["entries"]["characters"]),
        *(
            (f"Input schemas that {name} refuses, of {first['entries']['tools']}", _count(name))
            for name in first["refused"]
        ),
        (
            f"Wrong calls that end as meant, of {calls}",
            lambda each: sum(good for good, _ in each["wrong_calls"]["kinds"].values()),
        ),
        ("... at once", lambda each: each["wrong_calls"]["at_once"]),
        ("... after one message", lambda each: each["wrong_calls"]["after_one_message"]),
        ("... after two or three", lambda each: each["wrong_calls"]["after_more"]),
        (
            "Wrong calls that end with other values",
            lambda each: each["wrong_calls"]["misunderstood"],
        ),
        ("Characters of a message, mean", lambda each: each["wrong_calls"]["message_characters"]),
        ("Tokens of a message, mean", lambda each: each["wrong_calls"]["message_tokens"]),
        (
            f"Queries that find their tool among the first three, of {queries}",
            lambda each: each["queries"]["found"],
        ),
    ]
    servers = run["servers"]
    body = [[title, *(str(read(each)) for each in servers.values())] for title, read in rows]
    return f"{_make_table(['', *map(_title(run), servers)], body)}\n\n{describe_origin(run)}"


def _count(provider: str) -> Callable[[Any], object]:
    return lambda each: len(each["refused"][provider])


def _title(run: Mapping[str, Any]) -> Callable[[str], str]:
    return lambda name: f"{name} {run['versions'][name]}"


def describe_origin(run: Mapping[str, Any]) -> str:
    """Say when, and with which tokenizer, it was measured."""
    tokens = (
        f"Tokens are counted with {run['tokenizer']}."
        if run["tokenizer"]
        else "Tokens are estimated as a quarter of the characters."
    )
    return f"Measured on {run['date']}. {tokens}"


def make_results(run: Mapping[str, Any]) -> str:
    """Return the table of results, in Markdown."""
    figures = run["results"]
    first = next(iter(figures.values()))
    rows = [
        ["Characters of all", *(f"{each['characters']:,}" for each in figures.values())],
        ["Tokens of all", *(f"{each['tokens']:,}" for each in figures.values())],
        [
            "Characters of one, median",
            *(f"{statistics.median(each['sizes'].values()):,.0f}" for each in figures.values()),
        ],
        [
            f"Questions that they answer, of {first['questions']}",
            *(str(each["answered"]) for each in figures.values()),
        ],
    ]
    return _make_table([f"{first['results']} results", *figures], rows)


def _make_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


PARTS = {"summary": make_summary, "results": make_results}


def fill_in(text: str) -> str:
    """Return the page's text with the figures in their places."""
    run = json.loads(FIGURES.read_text(encoding="utf-8"))
    for name, make in PARTS.items():
        begin = BEGIN.format(name)
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n\n{make(run)}\n\n{END}{rest.partition(END)[2]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(fill_in(PAGE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
