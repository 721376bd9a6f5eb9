"""Counts the tokens of tools' entries and answers, and says what would save most.

Runs in the process of the command. With the package tiktoken, and its vocabulary at hand, tokens
are those of OpenAI's models; otherwise they are estimated from the length, and the report says so.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from mcp_notebook.check.findings import Finding
from mcp_notebook.check.subject import CheckedTool, Subject
from mcp_notebook.text.wording import count

VOCABULARY = "o200k_base"
LOAD_TIMEOUT = 5.0
"""Seconds to wait for the vocabulary, which tiktoken may have to download."""
MOST_SAVINGS = 3
MIN_SAVING = 50
"""Tokens below which a saving is not worth a note."""
ENOUGH_DESCRIPTION = 120
"""Tokens of a description beyond which most of it is rarely read."""
ENOUGH_ANSWER = 500
"""Tokens of an answer beyond which a model mostly needs a part."""
ENOUGH_PARAMETER = 60
"""Tokens of one parameter's schema beyond which it is worth a look."""
MANY_TOOLS = 2_000
"""Tokens of all entries beyond which clients can search the tools instead of listing them."""
SEARCH_TOKENS = 500
"""Tokens of the tools that ``--meta-tools=only`` lists, about."""
_CHARACTERS = 4
"""Characters of a token on average, in English text and JSON."""


def count_tokens(text: str) -> int:
    """Return the number of tokens of a text."""
    tokenize = load_tokenizer()
    return -(-len(text) // _CHARACTERS) if tokenize is None else len(tokenize(text))


@cache
def load_tokenizer() -> Callable[[str], Sequence[int]] | None:
    """Return tiktoken's tokenizer; None if it is not installed or has no vocabulary."""
    found: list[Callable[[str], Sequence[int]]] = []

    def load() -> None:
        try:
            import tiktoken  # noqa: PLC0415 - optional

            found.append(tiktoken.get_encoding(VOCABULARY).encode_ordinary)
        except Exception:  # noqa: BLE001, S110 - not installed, no network, no folder to store it
            pass

    thread = threading.Thread(target=load, name="tiktoken", daemon=True)
    thread.start()
    thread.join(LOAD_TIMEOUT)
    return found[0] if found else None


def count_entry(tool: CheckedTool) -> int:
    """Return the tokens of a tool that a model reads in each turn: not of its output schema."""
    entry = tool.entry
    parameters = json.dumps(entry.get("inputSchema", {}), ensure_ascii=False, separators=(",", ":"))
    return sum(map(count_tokens, (tool.name, str(entry.get("description", "")), parameters)))


def describe_cost(subject: Subject) -> str:
    """Return the tokens of all entries, and how they were counted, as a sentence."""
    total = sum(map(count_entry, subject.list_tools()))
    how = (
        "estimated as a quarter of the characters; with tiktoken installed, they are counted"
        if load_tokenizer() is None
        else f"counted with tiktoken's {VOCABULARY}"
    )
    return f"A model reads {count(total, 'token')} of entries in each turn ({how})."


@dataclass(frozen=True, kw_only=True)
class _Saving:
    tokens: int
    tool: CheckedTool | None
    rule: str
    reason: str
    advice: str


def find_savings(subject: Subject) -> Iterator[Finding]:
    """Yield the three things that would save most tokens, as notes."""
    savings = [saving for saving in _list_savings(subject) if saving.tokens >= MIN_SAVING]
    for saving in sorted(savings, key=lambda each: -each.tokens)[:MOST_SAVINGS]:
        tool = saving.tool
        yield Finding(
            tool=None if tool is None else tool.name,
            rule=saving.rule,
            severity="note",
            reason=saving.reason,
            advice=saving.advice,
            cell=None if tool is None or tool.cell is None else tool.cell.number,
            line=None if tool is None or tool.function is None else tool.function.lineno,
        )


def _list_savings(subject: Subject) -> Iterator[_Saving]:
    tools = list(subject.list_tools())
    for tool in tools:
        yield from _list_entry_savings(tool)
        yield from _list_answer_savings(subject, tool)
    total = sum(map(count_entry, tools))
    if total > MANY_TOOLS:
        yield _Saving(
            tokens=total - SEARCH_TOKENS,
            tool=None,
            rule="costly-list",
            reason=f"A model reads {total:,} tokens for {count(len(tools), 'tool')} in each turn.",
            advice="Serve them with `--meta-tools=only`, so that the model searches for tools.",
        )


def _list_entry_savings(tool: CheckedTool) -> Iterator[_Saving]:
    description = count_tokens(str(tool.entry.get("description", "")))
    yield _Saving(
        tokens=description - ENOUGH_DESCRIPTION,
        tool=tool,
        rule="costly-description",
        reason=f"The description takes {description:,} tokens in each turn.",
        advice="Keep what a model needs to choose and call the tool; move the rest to comments.",
    )
    for name, schema in tool.entry.get("inputSchema", {}).get("properties", {}).items():
        tokens = count_tokens(json.dumps(schema, ensure_ascii=False, separators=(",", ":")))
        choices = len(schema.get("enum", ())) if isinstance(schema, dict) else 0
        yield _Saving(
            tokens=tokens - ENOUGH_PARAMETER,
            tool=tool,
            rule="costly-parameter",
            reason=f"The parameter `{name}` takes {tokens:,} tokens in each turn.",
            advice=(
                f"Take text in place of {choices} choices, and name close ones in a `ToolError`."
                if choices
                else "Describe it in fewer words, or with fewer fields and alternatives."
            ),
        )


def _list_answer_savings(subject: Subject, tool: CheckedTool) -> Iterator[_Saving]:
    texts = [each.text for each in (*subject.trials, *subject.answers) if each.tool == tool.name]
    tokens = max(map(count_tokens, texts), default=0)
    yield _Saving(
        tokens=tokens - ENOUGH_ANSWER,
        tool=tool,
        rule="costly-answer",
        reason=f"An answer takes {tokens:,} tokens, and clients send it again in each later turn.",
        advice="Return a summary or fewer rows, with a parameter for more, or set "
        "`--max-result-chars`.",
    )
