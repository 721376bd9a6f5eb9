"""The query of a table's live view, as the view writes it into the URI that it reads.

Pure. A query is JSON of at most `MAX_QUERY` characters from a page in a client: it is validated
here, its numbers are positions, and its texts are only ever compared with cells.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import DecodeError, Meta, Struct, json

MAX_QUERY = 4_000
"""Characters of a query."""
MAX_ROWS = 200
"""Rows of one page."""
MAX_SHOWN_COLUMNS = 60
"""Columns of one page; a view of a wider table turns columns like pages."""
MAX_LISTED_COLUMNS = 500
"""Columns that are listed for a person to choose from; a text finds others."""

_Position: TypeAlias = Annotated[int, Meta(ge=0, lt=2**31)]
_Text: TypeAlias = Annotated[str, Meta(max_length=200)]
Comparison: TypeAlias = Literal["equals", "contains", "from", "to", "missing", "present"]


class Condition(Struct, frozen=True, forbid_unknown_fields=True):
    """What a column's cells have to fulfil for their rows to match."""

    column: _Position
    test: Comparison
    value: _Text = ""
    """What cells are compared with, as a person typed it."""


class Rows(Struct, frozen=True, forbid_unknown_fields=True):
    """The rows that match, in an order."""

    conditions: Annotated[tuple[Condition, ...], Meta(max_length=20)] = ()
    """A row has to fulfil all of them."""
    search: _Text = ""
    """A text that one of a row's cells has to contain; empty for all rows."""
    sort: _Position | None = None
    """The column to sort by; None for the table's own order."""
    descending: bool = False


class _Query(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    pass


class PageQuery(_Query, frozen=True, tag="page"):
    """Asks for a page of rows."""

    rows: Rows = Rows()
    start: _Position = 0
    count: Annotated[int, Meta(ge=1, le=MAX_ROWS)] = 50
    columns: Annotated[tuple[_Position, ...], Meta(max_length=MAX_SHOWN_COLUMNS)] | None = None
    """The columns to show; None for the first ones."""


class SummaryQuery(_Query, frozen=True, tag="summary"):
    """Asks for a summary of a column, of the rows that match."""

    column: _Position
    rows: Rows = Rows()


class ColumnsQuery(_Query, frozen=True, tag="columns"):
    """Asks for the names of columns, for a person to choose from."""

    find: _Text = ""
    """A text that the names contain; empty for the first columns."""


_DECODER = json.Decoder(PageQuery | SummaryQuery | ColumnsQuery)


class InvalidQuery(ValueError):
    """A query that cannot be answered; its text is for the view's person."""


def read_query(text: str) -> PageQuery | SummaryQuery | ColumnsQuery:
    """Read the query of a view; an empty one asks for the first page.

    Raises:
        InvalidQuery: It is too long, not JSON, or not a query.
    """
    if not text:
        return PageQuery()
    if len(text) > MAX_QUERY:
        raise InvalidQuery(f"The query has {len(text):,} characters; at most {MAX_QUERY:,} fit.")
    try:
        query: PageQuery | SummaryQuery | ColumnsQuery = _DECODER.decode(text)
    except (DecodeError, UnicodeEncodeError) as error:
        raise InvalidQuery(f"The query cannot be read: {error}.") from None
    return query
