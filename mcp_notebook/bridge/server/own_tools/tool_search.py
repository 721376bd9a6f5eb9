"""Ranks tools by the words of a query (BM25), for models that do not see the whole list.

Runs on the bridge's event loop; no I/O. A tool's words come from everything that its author wrote:
name, title, tags, description, parameters with their descriptions and choices, examples, and the
name of the notebook. A word of the query also counts, for less, where it begins as a word of the
tool does: their endings differ, or one is part of the other. Words of time and numbers do not
count: they are mostly values of arguments. A library for this would bring numpy, which takes more
memory than the rest of the bridge.
"""

import math
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any
from unicodedata import combining, normalize

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access.caller import Caller, Permissions
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.wire import messages

MAX_QUERY_WORDS = 64
"""Words of a query that count; a model writes fewer than ten."""
MAX_TEXT = 4_000
"""Characters of one of a tool's texts that are indexed."""
_SATURATION, _LENGTH_WEIGHT = 1.2, 0.4
"""BM25's k1 and b. Few tools are long because they say the same thing often, so b is small."""
_OF_NAME, _OF_TITLE, _OF_TAGS, _OF_FIRST_LINE, _OF_PARAMETERS, _OF_REST = (
    4.0,
    2.5,
    3.0,
    2.0,
    1.0,
    0.7,
)
"""How often a word counts in each of a tool's texts."""
_ALIKE_WEIGHT = 0.8
"""How much a word counts that only begins alike."""
_MIN_BEGINNING, _MIN_SHARE = 3, 0.6
"""Letters at the beginning that words have in common, at least, and their share of the longer word;
the share does not matter if the shorter word is the beginning of the longer one."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W\d_a-zA-Z]+")
_STOP_TEXT = (
    "a about all an and any are as at be by can could do does for from get give has have how i if "
    "in into is it its let like may me my need not of on one or our out per please same should "
    "show so some such tell than that the their them then there these this those to tool up us "
    "use using want was we were what when where which who why will with would you your "
    "ago april august current currently day days december february friday january july june last "
    "latest march monday month months next november now october past previous quarter recent "
    "recently saturday september since sunday thursday today tomorrow tonight tuesday wednesday "
    "week weeks year years yesterday"
)
_STOP_WORDS = frozenset(_STOP_TEXT.split())


def _list_words(text: str) -> list[str]:
    """Return a text's words, also those of ``top_customers`` and ``topCustomers``."""
    plain = "".join(c for c in normalize("NFKD", text[:MAX_TEXT]) if not combining(c))
    return [word.lower() for word in _WORD.findall(plain)]


def _list_texts(entry: CatalogEntry) -> Iterator[tuple[str, float]]:
    """Yield what the author of a tool wrote, and how much a word there counts."""
    tool = entry.tool
    yield tool.name, _OF_NAME
    yield tool.title or "", _OF_TITLE
    yield entry.notebook, _OF_PARAMETERS
    yield from ((str(tag), _OF_TAGS) for tag in _read_list(tool.meta, meta_keys.TAGS))
    first, _, rest = tool.description.strip().partition("\n")
    yield first, _OF_FIRST_LINE
    yield rest, _OF_REST
    yield from _list_schema_texts(tool.input_schema)


def _list_schema_texts(schema: Any) -> Iterator[tuple[str, float]]:
    """Yield the names, descriptions, choices and examples in a schema, at any depth."""
    if isinstance(schema, list):
        for each in schema:
            yield from _list_schema_texts(each)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key in ("properties", "$defs") and isinstance(value, dict):
            yield from ((str(name), _OF_PARAMETERS) for name in value)
            yield from _list_schema_texts([*value.values()])
        elif key in ("description", "title") and isinstance(value, str):
            yield value, _OF_REST
        elif key in ("enum", "examples") and isinstance(value, list):
            yield from ((each, _OF_PARAMETERS) for each in value if isinstance(each, str))
        elif key == "const" and isinstance(value, str):
            yield value, _OF_PARAMETERS
        else:
            yield from _list_schema_texts(value)


def _read_list(meta: Mapping[str, Any] | None, key: str) -> list[Any]:
    value = (meta or {}).get(key)
    return value if isinstance(value, list) else []


def _is_telling(word: str) -> bool:
    return word not in _STOP_WORDS and not word.isdecimal()


def _count_words(entry: CatalogEntry) -> Mapping[str, float]:
    counts: dict[str, float] = {}
    for text, weight in _list_texts(entry):
        for word in _list_words(text):
            if _is_telling(word):
                counts[word] = counts.get(word, 0.0) + weight
    return counts


class _Index:
    """The words of some tools.

    Args:
        entries: The tools, and the notebooks that can be run.
        previous: The words of some of them, by kind and served name.
    """

    def __init__(
        self,
        entries: Sequence[CatalogEntry],
        previous: "Mapping[tuple[messages.Kind, str], _Words]",
    ) -> None:
        self.entries = entries
        self.words: dict[tuple[messages.Kind, str], _Words] = {}
        """By kind and served name."""
        self._tools: dict[str, dict[int, float]] = {}
        """The tools with each word, by their place, and how much it counts in them."""
        self._by_beginning: dict[str, list[str]] = {}
        """The words with the same first letters."""
        for place, entry in enumerate(entries):
            key = entry.tool.kind, entry.name
            known = previous.get(key)
            counts = known[1] if known and known[0] is entry.tool else _count_words(entry)
            self.words[key] = entry.tool, counts
            for word, count in counts.items():
                if word not in self._tools:
                    self._tools[word] = {}
                    self._by_beginning.setdefault(word[:_MIN_BEGINNING], []).append(word)
                self._tools[word][place] = count
        self._lengths = [sum(counts.values()) for _, counts in self.words.values()]
        self._mean_length = sum(self._lengths) / (len(self._lengths) or 1)

    def rank(self, query: str) -> list[CatalogEntry]:
        """Return the tools with words of a query, best first."""
        words = dict.fromkeys(filter(_is_telling, _list_words(query)))
        scores: dict[int, float] = {}
        for word in [*words][:MAX_QUERY_WORDS]:
            best: dict[int, float] = {}
            for alike, weight in self._list_alike(word):
                for place, score in self._score(alike):
                    best[place] = max(best.get(place, 0.0), weight * score)
            for place, score in best.items():
                scores[place] = scores.get(place, 0.0) + score
        places = sorted(scores, key=lambda place: (-scores[place], place))
        return [self.entries[place] for place in places]

    def _list_alike(self, word: str) -> Iterable[tuple[str, float]]:
        """Yield the words that a word of a query is looked for as, and how much each counts."""
        yield word, 1.0
        for other in self._by_beginning.get(word[:_MIN_BEGINNING], ()):
            if other != word and _begins_alike(word, other):
                yield other, _ALIKE_WEIGHT

    def _score(self, word: str) -> Iterator[tuple[int, float]]:
        """Yield the tools with a word, and their scores for it."""
        tools = self._tools.get(word, {})
        rarity = math.log(1 + (len(self.entries) - len(tools) + 0.5) / (len(tools) + 0.5))
        for place, count in tools.items():
            length = self._lengths[place] / self._mean_length
            norm = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length)
            yield place, rarity * count * (_SATURATION + 1) / (count + norm)


_Words = tuple[messages.ToolInfo, Mapping[str, float]]
"""A declaration, and its words with how much each counts."""
_Sources = tuple[Sequence[CatalogEntry], Sequence[CatalogEntry]]
"""The lists of tools and of notebooks that an index was made of."""


def _begins_alike(word: str, other: str) -> bool:
    """Return whether two words with a beginning in common are forms of one, or one in the other."""
    pairs = zip(word, other, strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return common in (len(word), len(other)) or common >= _MIN_SHARE * max(len(word), len(other))


class ToolSearch:
    """Searches the tools that each caller may call.

    Args:
        tools: The tools, as callers see them.
        max_indexes: Size of the LRU cache of indexes, one for each set of permissions.
    """

    def __init__(self, tools: PermittedTools, *, max_indexes: int = 16) -> None:
        self._tools = tools
        self._max_indexes = max_indexes
        self._indexes: OrderedDict[Permissions, tuple[_Sources, _Index]] = OrderedDict()

    def rank(self, caller: Caller, query: str) -> Sequence[CatalogEntry]:
        """Return the caller's tools that fit a query, best first; all for an empty query.

        Notebooks that have to run before their tools are known are among them.
        """
        tools = self._tools.list_entries(caller)
        notebooks = self._tools.list_entries(caller, "notebook")
        if not query.strip():
            return (*tools, *notebooks)
        known = self._indexes.get(caller.permissions)
        if known is None or known[0][0] is not tools or known[0][1] is not notebooks:
            words = {} if known is None else known[1].words
            known = (tools, notebooks), _Index((*tools, *notebooks), words)
            self._indexes[caller.permissions] = known
            if len(self._indexes) > self._max_indexes:
                self._indexes.popitem(last=False)
        self._indexes.move_to_end(caller.permissions)
        return known[1].rank(query)
