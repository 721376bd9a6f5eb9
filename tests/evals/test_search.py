"""How many of a hundred queries find their tool among the first three.

``python tests/evals/test_search.py`` prints the figures and the misses, beside BM25 over the same
texts without stems, beginnings and synonyms.
"""

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence

from search_queries import QUERIES
from tool_pool import list_tools

from mcp_notebook.bridge.access.caller import OWNER
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.server.lists.tool_search import ToolSearch

FIRST = 3


def rank(query: str) -> list[str]:
    """Return the names of the tools that the bridge's search finds."""
    return [entry.tool.name for entry in _SEARCH.rank(OWNER, query)]


def rank_plainly(query: str) -> list[str]:
    """Return the names of the tools that BM25 finds by whole words."""
    mean = sum(map(Counter.total, _WORDS.values())) / len(_WORDS)
    scores = Counter[str]()
    for word in dict.fromkeys(_split(query)):
        places = [name for name, words in _WORDS.items() if word in words]
        rarity = math.log(1 + (len(_WORDS) - len(places) + 0.5) / (len(places) + 0.5))
        for name in places:
            count, length = _WORDS[name][word], _WORDS[name].total() / mean
            scores[name] += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length))
    return [name for name, _ in scores.most_common()]


def find_misses(search: Callable[[str], Sequence[str]]) -> list[tuple[str, str]]:
    """Return the queries that do not find their tool among the first, with the tool."""
    return [(query, tool) for query, tool in QUERIES if tool not in search(query)[:FIRST]]


def _split(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _make_search() -> ToolSearch:
    catalog = Catalog()
    for notebook, tools in list_tools().items():
        catalog.set_kernel(notebook, notebook=notebook, tools=tools)
    return ToolSearch(PermittedTools(catalog))


_SEARCH = _make_search()
_TEXTS = {
    tool.name: " ".join([tool.name, tool.description, *tool.input_schema["properties"]])
    for tools in list_tools().values()
    for tool in tools
}
_WORDS = {name: Counter(_split(text)) for name, text in _TEXTS.items()}


def test_the_pool_and_the_queries_fit_together():
    names = [tool.name for tools in list_tools().values() for tool in tools]
    assert len({*names}) == len(names) == 60
    assert len(dict(QUERIES)) == len(QUERIES) == 100
    assert {tool for _, tool in QUERIES} <= {*names}


def test_most_queries_find_their_tool_among_the_first_three():
    misses = find_misses(rank)
    assert len(misses) <= 8, misses
    assert len(find_misses(rank_plainly)) > 2 * len(misses)


if __name__ == "__main__":
    for title, search in (("mcp-notebook", rank), ("plain BM25", rank_plainly)):
        misses = find_misses(search)
        lines = [f"{title}: {len(QUERIES) - len(misses)} of {len(QUERIES)}"]
        lines += [f"  {query} -> {tool}" for query, tool in misses]
        sys.stdout.write("\n".join(lines) + "\n")
