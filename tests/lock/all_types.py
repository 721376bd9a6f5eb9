"""Functions with parameters, defaults and results of all kinds, of which the lock is kept here."""

import datetime as dt
import enum
import ipaddress
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NotRequired,
    Optional,
    TypeVar,
    Union,
)

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field
from typing_extensions import TypedDict


class Region(enum.Enum):
    """Where."""

    EU = "eu"
    US = "us"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2
    TOP = 2


class Shade(enum.StrEnum):
    """Light or
    dark."""

    LIGHT = enum.auto()
    DARK = enum.auto()


class Mask(enum.Flag):
    READ = 1
    WRITE = 2
    BOTH = 3


@dataclass
class Span:
    """A span of days.

    Both are part of it.
        Indented further.
    """

    start: dt.date
    end: dt.date = dt.date(2026, 11, 28)
    tags: list[str] = field(default_factory=list)


@dataclass
class Bare:
    x: int | None = None


class Point(NamedTuple):
    x: float
    y: float = 0.5


class Row(TypedDict):
    """A row."""

    name: str
    sum: NotRequired[float]


class Node(BaseModel):
    """A node
    of a tree."""

    value: int = Field(0, ge=0, description="Its value.")
    children: "list[Node]" = []


Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    items: list[Item]
    next: str | None = None


def scalars(
    a: int,
    b: float,
    c: str,
    d: bool,
    e: bytes,
    f: Decimal,
    g: complex = 1j,
    h: Fraction = Fraction(1, 3),
    i: Any = None,
    j: None = None,
) -> float:
    """Take scalars."""


def moments(
    a: dt.date,
    b: dt.datetime = dt.datetime(2026, 11, 28, 12, tzinfo=dt.UTC),
    c: dt.time = dt.time(8, 30),
    d: dt.timedelta = dt.timedelta(days=1, seconds=2),
    e: pd.Timestamp = pd.Timestamp("2026-11-28"),
    f: pd.Timedelta = pd.Timedelta("1h"),
    g: np.datetime64 = np.datetime64("2026-11-28"),
) -> dt.datetime:
    """Take moments."""


def enums(
    a: Region,
    b: Level = Level.HIGH,
    c: Shade = Shade.DARK,
    d: Mask = Mask.READ | Mask.WRITE,
    e: Literal["x", "y", 3] = "x",
    f: Literal[Region.EU] = Region.EU,
    g: list[Region] | None = None,
) -> Region:
    """Take enums."""


def unions(
    a: int | str,
    b: Optional[int] = None,
    c: Union[int, None, str] = None,
    d: "int | None" = None,
    e: Union[Span, Bare, None] = None,
    f: Annotated[int, Field(ge=1, le=12)] | Literal["all"] = "all",
    g: Optional[Annotated[str, Field(pattern="^a", max_length=3)]] = None,
    h: list[int | None] | dict[str, int | float] = {},
) -> int | None:
    """Take unions."""


def containers(
    a: list[int],
    b: tuple[int, str],
    c: tuple[float, ...] = (1.5,),
    d: set[str] = frozenset({"b", "a"}),
    e: frozenset[int] = frozenset({3, 1, 2}),
    f: dict[str, list[int]] = {"z": [1], "a": []},
    g: Sequence[str] = (),
    h: Iterable[int] = range(3),
    i: Mapping[str, Any] = {},
    j: dict[Region, int] = {},
    k: list = [],
) -> dict[str, list[float]]:
    """Take containers."""


def objects(
    a: Span,
    b: Point = Point(1),
    c: Row = {"name": "a"},
    d: Node = Node(value=2, children=[Node()]),
    e: Page[int] | None = None,
    f: Bare = Bare(),
    g: list[Span] = [],
) -> Node:
    """Take objects."""


def others(
    a: Path = Path("data") / "sales" / "2026.csv",
    b: uuid.UUID = uuid.UUID(int=7),
    c: re.Pattern = re.compile("a+"),
    d: ipaddress.IPv4Address = ipaddress.IPv4Address("127.0.0.1"),
    e: float = float("inf"),
    f: float = float("nan"),
    g: PurePosixPath = PurePosixPath("a/b"),
    h=Path("a") / "b",
    i=(1, "a"),
    j=None,
    **rest: int,
) -> Span:
    """Take others."""


def tables(
    a: pd.DataFrame,
    b: pd.Series,
    c: np.ndarray,
) -> pd.DataFrame:
    """Take tables."""


def described(year: int, most: Annotated[int, Field(description="At most.")] = 3) -> Row:
    """Describe things.

    With a second paragraph,
        and an indented line:

            code

    Args:
        year: The year,
            on two lines.
        most: Unused.

    Returns:
        A row.
    """


def results() -> list[Point]:
    """Return results."""


def pages() -> Page[Span]:
    """Return pages.

    With tabs.
    """


FUNCTIONS = (
    scalars,
    moments,
    enums,
    unions,
    containers,
    objects,
    others,
    tables,
    described,
    results,
    pages,
)
