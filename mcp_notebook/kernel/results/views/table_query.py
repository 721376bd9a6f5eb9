"""The query of a table's live view, as the view writes it into the URI that it reads.

Pure. A query is JSON of at most `MAX_QUERY` characters from a page in a client: it is validated
here, its numbers are positions, and its texts are only ever compared with cells.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

MAX_QUERY = 4_000
"""Characters of a query."""
MAX_ROWS = 200
"""Rows of one page."""
MAX_SHOWN_COLUMNS = 60
"""Columns of one page; a view of a wider table turns columns like pages."""

_Position: TypeAlias = Annotated[int, Field(ge=0, lt=2**31)]
_Text: TypeAlias = Annotated[str, Field(max_length=200)]
Comparison: TypeAlias = Literal["equals", "contains", "from", "to", "missing", "present"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Condition(_Model):
    """What a column's cells have to fulfil for their rows to match."""

    column: _Position
    test: Comparison
    value: _Text = ""
    """What cells are compared with, as a person typed it."""


class Rows(_Model):
    """The rows that match, in an order."""

    conditions: Annotated[tuple[Condition, ...], Field(max_length=20)] = ()
    """A row has to fulfil all of them."""
    search: _Text = ""
    """A text that one of a row's cells has to contain; empty for all rows."""
    sort: _Position | None = None
    """The column to sort by; None for the table's own order."""
    descending: bool = False


class PageQuery(_Model):
    """Asks for a page of rows."""

    kind: Literal["page"] = "page"
    rows: Rows = Rows()
    start: _Position = 0
    count: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 50
    columns: Annotated[tuple[_Position, ...], Field(max_length=MAX_SHOWN_COLUMNS)] | None = None
    """The columns to show; None for the first ones."""


class SummaryQuery(_Model):
    """Asks for a summary of a column, of the rows that match."""

    kind: Literal["summary"]
    rows: Rows = Rows()
    column: _Position


class _Query(BaseModel):
    query: Annotated[PageQuery | SummaryQuery, Field(discriminator="kind")]


class InvalidQuery(ValueError):
    """A query that cannot be answered; its text is for the view's person."""


def read_query(text: str) -> PageQuery | SummaryQuery:
    """Read the query of a view; an empty one asks for the first page.

    Raises:
        InvalidQuery: It is too long, not JSON, or not a query.
    """
    if not text:
        return PageQuery()
    if len(text) > MAX_QUERY:
        raise InvalidQuery(f"The query has {len(text):,} characters; at most {MAX_QUERY:,} fit.")
    try:
        return _Query.model_validate_json(f'{{"query": {text}}}').query
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"][2:])) or "the query"
        raise InvalidQuery(f"The query cannot be read: {place}: {first['msg']}.") from None
