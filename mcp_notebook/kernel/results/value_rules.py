"""A rule of how a value becomes content, and which libraries' classes a value is of.

Runs in the user's kernel, on the thread of the call. A value is matched to the rules of a library
by the modules of its classes, so that no rule looks for the classes of a library that the value
has nothing to do with.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.custom_types import Conversion
from mcp_notebook.kernel.safe.libraries import find_libraries

_Renderer = TypeVar("_Renderer")


@dataclass(frozen=True)
class Position:
    """Where a value lies within the value that a tool returned."""

    root: Any
    """What the tool returned."""
    depth: int = 0
    """In how many collections the value lies."""
    conversions: tuple[Conversion, ...] = ()
    """The author's converters whose results the value is part of."""


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[_Renderer]):
    """One row of the table of values: which values, and what content they become."""

    values: str
    """Which values, in Markdown."""
    content: str
    """What the client gets of them, in Markdown."""
    render: Callable[[_Renderer, Any, Position], list[Piece] | None] = field(repr=False)
    """Makes the content; returns None if a later row applies after all."""
    libraries: frozenset[str] = frozenset()
    """Top-level modules that must define one of the value's classes; empty for any value."""
    accepts: Callable[[Any], bool] = field(default=lambda _: True, repr=False)
    """Tells whether the row applies to a value of these libraries."""
    is_rich: bool = False
    """Whether a list or dict with such a value in it is rendered item by item."""
    replaces_display: bool = False
    """Whether such a value is also rendered when it is displayed, not only when it is returned."""


def match_rules(rules: Iterable[Rule[_Renderer]], value: Any) -> Iterator[Rule[_Renderer]]:
    """Yield the rules that apply to a value, in their order."""
    libraries: frozenset[str] | None = None
    for rule in rules:
        if rule.libraries:
            if libraries is None:
                libraries = find_libraries(value)
            if rule.libraries.isdisjoint(libraries):
                continue
        if rule.accepts(value):
            yield rule
