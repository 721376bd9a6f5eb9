"""Ranks tools by the words of a query (BM25), for models that do not see the whole list.

Runs on the bridge's event loop; no I/O. A tool's words come from everything that its author wrote:
name, title, tags, description, parameters with their descriptions and choices, examples, and the
name of the notebook. Words are compared by their stems. A word of the query also counts, for less,
where it is the beginning of a word of the tool, or a common synonym. A library for this would bring
numpy, which takes more memory than the rest of the bridge.
"""

import math
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from unicodedata import combining, normalize

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access.caller import Caller, Permissions
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.wire import messages

MAX_INDEXES = 16
"""Size of the LRU cache of indexes, one for each set of permissions."""
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
_PREFIX_WEIGHT, _SYNONYM_WEIGHT = 0.6, 0.45
"""How much a word of the query counts that is found only as a beginning, or as a synonym."""
_MIN_PREFIX = 3
"""Letters of a word of the query that is looked for as a beginning."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W\d_a-zA-Z]+")
_STOP_TEXT = (
    "a about all an and any are as at be by can could do does for from get give has have how i if "
    "in into is it its let like may me my need not of on one or our out per please same should "
    "show so some such tell than that the their them then there these this those to tool up us "
    "use using want was we were what when where which who why will with would you your"
)
_STOP_WORDS = frozenset(_STOP_TEXT.split())
_SUFFIXES = (
    *(("ational", "ate"), ("ization", "ize"), ("isation", "ize"), ("fulness", ""), ("ements", "")),
    *(("ement", ""), ("ments", ""), ("ment", ""), ("ations", "ate"), ("ation", "ate")),
    *(("ities", ""), ("ity", ""), ("ness", ""), ("ances", ""), ("ance", ""), ("ences", "")),
    *(("ence", ""), ("ions", ""), ("ion", ""), ("ings", ""), ("ing", ""), ("ical", "ic")),
    *(("ies", "y"), ("ers", ""), ("ors", ""), ("er", ""), ("or", ""), ("est", ""), ("ed", "")),
    *(("ally", ""), ("ly", ""), ("al", ""), ("ive", ""), ("es", ""), ("s", "")),
)
_MIN_STEM = 3
"""Letters that remain of a word without its suffix."""
_SYNONYMS = (
    "add append create insert new register record book",
    "amount value total sum",
    "anomaly outlier unusual odd suspicious",
    "answer reply respond response",
    "area region zone territory district",
    "average mean typical",
    "bill invoice",
    "buy purchase order",
    "calculate compute work determine",
    "cancel revoke withdraw annul",
    "change edit modify update alter adjust set",
    "check validate verify inspect audit test",
    "chart plot graph draw diagram figure picture visualize histogram curve",
    "client customer buyer account",
    "combine join merge link match",
    "compare difference diff versus contrast",
    "cost price expense spend charge fee",
    "delete remove drop erase purge clear discard",
    "distance far length route near close nearest",
    "document file report paper",
    "earn revenue sales turnover income",
    "employee staff worker person people colleague",
    "error failure fault bug problem issue",
    "explain describe summary summarize overview profile digest statistic",
    "export save write dump store download",
    "fast quick speed slow latency duration performance",
    "find search lookup locate query filter select",
    "forecast predict projection estimate expect future",
    "gap missing null empty blank incomplete",
    "group cluster segment category bucket partition",
    "growth trend increase rise develop change",
    "highest top best largest biggest maximum most leading",
    "hire recruit onboard",
    "import load read ingest upload fetch open",
    "list enumerate display browse view",
    "lowest bottom worst smallest minimum least",
    "location place city town site address",
    "machine device sensor equipment",
    "mail email message send notify notification",
    "mistake wrong incorrect invalid",
    "money currency cash payment pay",
    "move transfer shift relocate",
    "history past previous earlier log",
    "late overdue delay delayed due unpaid outstanding",
    "product item article goods sku",
    "quit leave churn attrition resign",
    "rain precipitation weather",
    "relation correlation association dependence related",
    "schedule plan appointment calendar meeting reserve",
    "score rate rating rank",
    "stock inventory warehouse supply",
    "temperature heat warm hot cold",
    "train fit model learn",
    "translate convert transform conversion",
    "vacation holiday absence leave",
)


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    """Return a word without its ending, so that "averages" and "averaging" are the same."""
    for suffix, replacement in _SUFFIXES:
        if (
            word.endswith(suffix)
            and len(word) - len(suffix) >= _MIN_STEM
            and not (suffix == "s" and word.endswith(("ss", "us", "is")))
        ):
            word = word[: -len(suffix)] + replacement
            break
    if len(word) > _MIN_STEM and word[-1] == word[-2] and word[-1] not in "aeilos":
        word = word[:-1]  # "plott" of "plotting"
    return word[:-1] if len(word) > _MIN_STEM and word[-1] in "ey" else word


def _list_words(text: str) -> list[str]:
    """Return a text's words, also those of ``top_customers`` and ``topCustomers``."""
    plain = "".join(c for c in normalize("NFKD", text[:MAX_TEXT]) if not combining(c))
    return [word.lower() for word in _WORD.findall(plain)]


@lru_cache(maxsize=1)
def _find_synonyms() -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in _SYNONYMS:
        stems = frozenset(map(_stem, line.split()))
        for stem in stems:
            found[stem] = found.get(stem, frozenset()) | stems - {stem}
    return found


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


def _count_words(entry: CatalogEntry) -> Mapping[str, float]:
    counts: dict[str, float] = {}
    for text, weight in _list_texts(entry):
        for word in _list_words(text):
            if word not in _STOP_WORDS:
                stem = _stem(word)
                counts[stem] = counts.get(stem, 0.0) + weight
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
        """The tools with each stem, by their place, and how much it counts in them."""
        for place, entry in enumerate(entries):
            key = entry.tool.kind, entry.name
            known = previous.get(key)
            counts = known[1] if known and known[0] is entry.tool else _count_words(entry)
            self.words[key] = entry.tool, counts
            for stem, count in counts.items():
                self._tools.setdefault(stem, {})[place] = count
        self._lengths = [sum(counts.values()) for _, counts in self.words.values()]
        self._mean_length = sum(self._lengths) / (len(self._lengths) or 1)

    def rank(self, query: str) -> list[CatalogEntry]:
        """Return the tools with words of a query, best first."""
        words = [word for word in _list_words(query) if word not in _STOP_WORDS]
        scores: dict[int, float] = {}
        for stem in [*dict.fromkeys(map(_stem, words))][:MAX_QUERY_WORDS]:
            best: dict[int, float] = {}
            for alike, weight in self._list_alike(stem):
                for place, score in self._score(alike):
                    best[place] = max(best.get(place, 0.0), weight * score)
            for place, score in best.items():
                scores[place] = scores.get(place, 0.0) + score
        places = sorted(scores, key=lambda place: (-scores[place], place))
        return [self.entries[place] for place in places]

    def _list_alike(self, stem: str) -> Iterable[tuple[str, float]]:
        """Yield the stems that a stem of a query is looked for as, and how much each counts."""
        yield stem, 1.0
        if len(stem) >= _MIN_PREFIX:
            for other in self._tools:
                if other != stem and _is_beginning(stem, other):
                    yield other, _PREFIX_WEIGHT
        for other in _find_synonyms().get(stem, ()):
            yield other, _SYNONYM_WEIGHT

    def _score(self, stem: str) -> Iterator[tuple[int, float]]:
        """Yield the tools with a stem, and their scores for it."""
        tools = self._tools.get(stem, {})
        rarity = math.log(1 + (len(self.entries) - len(tools) + 0.5) / (len(tools) + 0.5))
        for place, count in tools.items():
            length = self._lengths[place] / self._mean_length
            norm = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length)
            yield place, rarity * count * (_SATURATION + 1) / (count + norm)


_Words = tuple[messages.ToolInfo, Mapping[str, float]]
"""A declaration, and its stems with how much each counts."""
_Sources = tuple[Sequence[CatalogEntry], Sequence[CatalogEntry]]
"""The lists of tools and of notebooks that an index was made of."""


def _is_beginning(stem: str, other: str) -> bool:
    """Return whether one of two stems begins with the other, which is no accident of length."""
    short, long = sorted((stem, other), key=len)
    return len(short) >= (_MIN_PREFIX if short == stem else _MIN_PREFIX + 1) and long.startswith(
        short
    )


class ToolSearch:
    """Searches the tools that each caller may call.

    Args:
        tools: The tools, as callers see them.
    """

    def __init__(self, tools: PermittedTools) -> None:
        self._tools = tools
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
            if len(self._indexes) > MAX_INDEXES:
                self._indexes.popitem(last=False)
        self._indexes.move_to_end(caller.permissions)
        return known[1].rank(query)
