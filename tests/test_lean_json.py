"""`lean_json` writes and reads what pydantic_core does, which it loads for odd values only."""

import datetime as dt
import decimal
import enum
import math
import subprocess
import sys
import uuid
from collections import OrderedDict, deque
from dataclasses import dataclass

import pydantic_core
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_notebook import lean_json


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: float
    label: str


CIRCLE: list[object] = [1]
CIRCLE.append(CIRCLE)
PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters()),
    st.integers(-(2**70), 2**70), st.text(st.characters(categories=["Cs", "L"]), max_size=4),
)  # fmt: skip
ODD = st.sampled_from([
    Text("a"), Number(3), Colour.RED, Point(1.5, "p"), OrderedDict(b=1, a=2), deque([1]), (1, 2),
    {1}, frozenset(), {1: 2}, {True: 1}, {None: 1}, {1.5: 1}, {(1, 2): 3}, 1 + 2j, range(3),
    dt.datetime(2025, 1, 2, 3, 4, 5, 600, dt.timezone(dt.timedelta(hours=2))),
    dt.date(2025, 1, 2), dt.time(1), dt.datetime(2025, 1, 2, tzinfo=dt.UTC), dt.timedelta(1, 5),
    decimal.Decimal("1.10"), uuid.UUID(int=3), object, CIRCLE, 10**4000, "\ud800",
])  # fmt: skip
VALUES = st.recursive(
    PLAIN | ODD,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
MODES = st.sampled_from(["null", "constants"])


def read(text: bytes) -> str:
    """Return what a text says, as text: NaN differs from itself, and 1 is equal to 1.0 and True."""
    return repr(pydantic_core.from_json(text))


@given(VALUES, MODES, st.booleans())
@example([math.nan, None], "constants", False)
@example([math.inf], "null", False)
@example([None], "constants", True)
def test_values_are_written_as_pydantic_core_writes_them(value, mode, is_tolerant):
    options = {"inf_nan_mode": mode}
    options |= {"serialize_unknown": True, "fallback": str} if is_tolerant else {}

    def write(to_json):
        try:
            return read(to_json(value, **options))
        except ValueError:
            return "refused"

    assert write(lean_json.to_json) == write(pydantic_core.to_json)


SCRAPS = st.lists(st.sampled_from(list('[]{}:,"\\u0d8enaltrufsINfi+-.Ee19 \n\x01é\ufeff'))).map(
    lambda letters: "".join(letters).encode()
)


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@given(SCRAPS | st.binary(), st.booleans())
@example(b"1e400", False)
@example(b"-1e400", True)
@example(b"NaN", True)
@example(b"[NaN]", False)
@example(b'{"a":1,"a":2}', False)
@example(b"-0", False)
@example(b"9" * 4300, False)
@example(b"9" * 4301, False)
@example(b"123456789.123456789012345678901", False)
@example(deep(200), False)
@example(deep(201), False)
@example(b"[%b]" % b",".join([deep(2)] * 300), False)
@example(b'"\\ud800"', False)
@example(b'"\xed\xa0\x80"', False)
def test_texts_are_read_and_refused_as_pydantic_core_does(text, allows):
    def outcome(from_json):
        try:
            return repr(from_json(text, allow_inf_nan=allows))
        except ValueError as error:
            return str(error)

    assert outcome(lean_json.from_json) == outcome(pydantic_core.from_json)


def test_ordinary_values_do_not_load_pydantic_core():
    program = (
        "import sys\n"
        "from mcp_notebook.lean_json import from_json, to_json\n"
        "value = {'a': [1, 2.5, None, True, 'é'], 'b': {'c': 2**70}}\n"
        "assert from_json(to_json(value)) == value\n"
        "sys.exit('pydantic_core' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
