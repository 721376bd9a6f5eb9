"""Nested data that is too long to be shown."""

import array
import collections
from datetime import timedelta
from typing import NamedTuple

import numpy as np
import pytest

from mcp_notebook.kernel.results.tables.outline import summarize_items
from mcp_notebook.kernel.safe.to_json import to_short_json


def shorten(value):
    return to_short_json(value, 100_000, 300, summarize_items)[0]


def test_a_long_list_keeps_its_ends_and_says_what_is_between():
    short = shorten(list(range(1_000)))
    assert short[:10] == list(range(10))
    assert short[-10:] == list(range(990, 1_000))
    assert short[10:-10] == [
        "... 980 of 1,000 items left out; all: 0 to 999, mean 499.5, all distinct ..."
    ]


def test_records_within_data_are_summarized_by_field():
    rows = [{"id": n, "kind": "ab"[n % 2]} for n in range(500)]
    short = shorten({"source": "db", "rows": rows})
    assert short["source"] == "db"
    assert short["rows"][0] == rows[0]
    assert short["rows"][-1] == rows[-1]
    [note] = [item for item in short["rows"] if isinstance(item, str)]
    assert "id int: 0 to 499, mean 249.5, all distinct; kind str: 2 distinct, a (250)" in note


def test_a_long_dict_says_what_its_values_are():
    short = shorten({f"k{n}": n / 2 for n in range(1_000)})
    assert len(short) == 41
    assert short["..."] == "960 more of 1,000 items; all: 0.0 to 499.5, mean 249.75"


@pytest.mark.parametrize("make", [tuple, list, np.array])
def test_rows_are_summarized_by_their_places(make):
    short = shorten([make([n, n * 2]) for n in range(1_000)])
    [note] = [item for item in short if isinstance(item, str)]
    assert "all: [0] int: 0 to 999, mean 499.5, all distinct; [1] int: 0 to 1998, mean 999" in note


def test_rows_of_several_lengths_are_summarized_together():
    short = shorten([[n] * (n % 3 + 1) for n in range(400)])
    [note] = [item for item in short if isinstance(item, str)]
    assert "all: 799 values in them: 0 to 399" in note


def test_a_gap_in_rows_is_told():
    rows = [(n, None if n == 200 else n / 2) for n in range(400)]
    [note] = [item for item in shorten(rows) if isinstance(item, str)]
    assert "[1] float or null: 1 missing, 0.0 to 199.5" in note


def test_records_with_a_nested_field_are_summarized():
    rows = [{"id": n, "place": {"x": n / 2}, "tags": ["a"]} for n in range(400)]
    [note] = [item for item in shorten(rows) if isinstance(item, str)]
    assert "id int: 0 to 399, mean 199.5, all distinct; place.x float: 0.0 to 199.5" in note
    assert "tags list" in note


class Place(NamedTuple):
    x: float
    of: dict[str, int]


@pytest.mark.parametrize(
    "field", [lambda n: Place(n / 2, {"z": n}), lambda n: {"x": n / 2, "of": {"z": n}}]
)
def test_records_within_records_are_summarized_at_any_level(field):
    rows = [{"id": n, "place": field(n)} for n in range(400)]
    [note] = [item for item in shorten(rows) if isinstance(item, str)]
    assert "place.x float: 0.0 to 199.5" in note
    assert "place.of.z int: 0 to 399" in note
    [note] = [
        item for item in shorten([(n, field(n)) for n in range(400)]) if isinstance(item, str)
    ]
    assert "[1].of.z int: 0 to 399" in note


@pytest.mark.parametrize(
    "items",
    [
        set(range(5_000)),
        frozenset(range(5_000)),
        range(5_000),
        collections.deque(range(5_000)),
        dict.fromkeys(range(5_000)).keys(),
        dict(enumerate(range(5_000))).values(),
        array.array("q", range(5_000)),
        collections.UserList(range(5_000)),
        [np.int32(n) for n in range(5_000)],
        np.arange(5_000),
    ],
    ids=lambda items: type(items).__name__,
)
def test_every_sequence_is_shortened(items):
    short = shorten({"items": items})["items"]
    assert short[:10] == list(range(10))
    assert short[-10:] == list(range(4_990, 5_000))
    note = "all: 0 to 4999, mean 2499.5, all distinct"
    assert short[10] == f"... 4,980 of 5,000 items left out; {note} ..."


@pytest.mark.parametrize(
    "make",
    [
        dict,
        collections.OrderedDict,
        collections.Counter,
        collections.UserDict,
        collections.ChainMap,
        lambda items: collections.defaultdict(int, items),
    ],
)
def test_every_mapping_is_shortened(make):
    short = shorten(make({f"k{n}": n for n in range(5_000)}))
    note = "4,960 more of 5,000 items; all: 0 to 4999, mean 2499.5, all distinct"
    assert len(short) == 41
    assert short["..."] == note


def test_the_lists_in_a_record_are_shortened():
    class Run(NamedTuple):
        steps: list[int]

    assert "4,980 of 5,000 items left out" in str(shorten(Run(list(range(5_000)))))


def test_durations_are_summarized_as_they_are_written():
    short = shorten([timedelta(hours=n) for n in range(400)])
    assert "all: PT0S to P16DT15H" in str(short)


def test_of_very_many_items_the_first_are_summarized():
    short = shorten(list(range(200_000)))
    assert "of the first 50,000: 0 to 49999" in short[10]


def test_of_large_records_it_is_said_that_some_were_read():
    more = dict.fromkeys("cdefghij", "more")
    rows = [{"key": f"k{n}", "kind": "ab"[n % 2], **more} for n in range(20_000)]
    [note] = [item for item in shorten(rows) if isinstance(item, str)]
    assert "all: " not in note
    assert note.startswith(
        "... 19,980 of 20,000 items left out; key str: at least 10,000 distinct; kind"
    )
    assert note.endswith(
        '"about", "at least", %: of 10,000 rows spread over the table; rare values and gaps may be '
        "missing there ..."
    )


def test_what_contains_itself_and_what_is_nested_without_end_is_left_to_json():
    loop = []
    loop.extend([loop, loop, loop])
    assert shorten(loop) == ["..."] * 3
    doubled = [1]
    for _ in range(60):
        doubled = [doubled, doubled]
    assert "..." in str(shorten(doubled))
