"""Finds the values of a template's variables in a URI: the inverse of RFC 6570's expansion.

Runs on the bridge's event loop; pure. A kernel declares templates with ``{name}``, at most one
``{+path}``, and at the end ``{?first,second}`` (`kernel.tools.resource_templates`). The steps
never backtrack, so matching takes linear time:

1. The query is cut off; it may name the variables behind the ``?``, in any order.
2. The variables before ``{+path}`` are read from the left, each up to the next literal.
3. Those behind it are read from the right, or all if there is none: ``{name}.{type}`` takes
   ``a.tar.gz`` apart at the last dot.
4. ``{+path}`` gets the rest.
5. A value that could lead an author's ``folder / name`` elsewhere fits no template.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from urllib.parse import unquote, unquote_to_bytes

MAX_MATCHED = 65_536
"""Maximum characters of a URI that is matched."""
_QUERY = re.compile(r"\{\?([^}]*)\}$")
_VARIABLE = re.compile(r"\{(\+?\w+)\}")
_ENDS = {False: "/?#&,", True: "?#"}
"""Characters that no value has unquoted, by whether the variable takes slashes."""
_SEPARATOR = re.compile(r"[/\\]")
_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:")
"""How an absolute path begins, or on Windows one of another drive."""


def match(template: str, uri: str) -> dict[str, str] | None:
    """Return the values of a template's variables in a URI; None if it does not fit."""
    values = match_any(template, uri)
    return values if values is not None and _are_safe(template, uri, values) else None


def match_any(template: str, uri: str) -> dict[str, str] | None:
    """Match a URI without checking its values."""
    if len(uri) > MAX_MATCHED:
        return None
    literals, variables, queries = _parse(template)
    path, query = uri, ""
    if queries:
        path, _, query = uri.partition("#")[0].partition("?")
    values = _match_path(literals, variables, path)
    return None if values is None else values | _read_query(query, queries)


def _are_safe(template: str, uri: str, values: Mapping[str, str]) -> bool:
    """Return whether no value can lead an author's ``folder / name`` elsewhere."""
    try:
        unquote_to_bytes(uri).decode()
    except UnicodeError:
        return False
    _, variables, _ = _parse(template)
    return not any(
        "\0" in value
        or ".." in _SEPARATOR.split(value)
        or _ABSOLUTE.match(value)
        or ("/" in value and name in variables)
        for name, value in values.items()
    )


@lru_cache(maxsize=1_000)
def _parse(template: str) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Return the literals of a template, the variables between them, and those of its query."""
    query = _QUERY.search(template)
    parts = _VARIABLE.split(template[: query.start()] if query else template)
    return parts[::2], parts[1::2], query[1].split(",") if query else ()


def _match_path(
    literals: Sequence[str], variables: Sequence[str], path: str
) -> dict[str, str] | None:
    first, last = literals[0], literals[-1]
    start, end = len(first), len(path) - len(last)
    if not variables:
        return {} if path == first else None
    if start > end or not path.startswith(first) or not path.endswith(last):
        return None
    values: dict[str, str] = {}
    # The one that takes what the others leave: `{+path}`, or else the first.
    rest = next((place for place, name in enumerate(variables) if name.startswith("+")), 0)
    for place in range(len(variables) - 1, rest, -1):
        before = literals[place]
        found = path.rfind(before, start, end)
        if found < 0:
            return None
        values[variables[place]] = path[found + len(before) : end]
        end = found
    for place in range(rest):
        after = literals[place + 1]
        found = path.find(after, start, end)
        if found < 0:
            return None
        values[variables[place]] = path[start:found]
        start = found + len(after)
    values[variables[rest]] = path[start:end]
    if any(end in value for name, value in values.items() for end in _ENDS[name.startswith("+")]):
        return None
    return {name.lstrip("+"): unquote(values[name]) for name in variables}


def _read_query(query: str, names: Sequence[str]) -> dict[str, str]:
    """Return the values of a query's variables, each the first of its name.

    Names are compared without decoding: otherwise ``%74oken=`` before ``token=`` would take its
    place.
    """
    values: dict[str, str] = {}
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if name in names:
            values.setdefault(name, unquote(value))
    return values
