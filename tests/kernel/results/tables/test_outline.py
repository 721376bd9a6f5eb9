"""Nested data that is too long to be shown."""

from mcp_notebook.kernel.results.tables import summary
from mcp_notebook.kernel.results.tables.outline import shorten_nested


def test_small_data_stays_as_it_is():
    value = {"a": [1, 2, {"b": [3] * 50}], "empty": [[], {}]}
    assert shorten_nested(value, 300) is value


def test_a_long_list_keeps_its_ends_and_says_what_is_between():
    short = shorten_nested(list(range(1_000)), 300)
    assert short[:10] == list(range(10))
    assert short[-10:] == list(range(990, 1_000))
    assert short[10:-10] == [
        "... 980 of 1,000 items left out; all: 0 to 999, mean 499.5, all distinct ..."
    ]


def test_records_within_data_are_summarized_by_field():
    rows = [{"id": n, "kind": "ab"[n % 2]} for n in range(500)]
    short = shorten_nested({"source": "db", "rows": rows}, 300)
    assert short["source"] == "db"
    assert short["rows"][0] == rows[0]
    assert short["rows"][-1] == rows[-1]
    [note] = [item for item in short["rows"] if isinstance(item, str)]
    assert "id int: 0 to 499, mean 249.5, all distinct; kind str: 2 distinct, a (250)" in note


def test_a_long_dict_says_what_its_values_are():
    short = shorten_nested({f"k{n}": n / 2 for n in range(1_000)}, 300)
    assert len(short) == 41
    assert short["..."] == "960 more of 1,000 items; all: 0.0 to 499.5, mean 249.75"


def test_rows_of_numbers_are_summarized_once():
    short = shorten_nested([[n, n * 2] for n in range(1_000)], 300)
    assert sum("all: 0 to 1998" in str(row) for row in short) == 1


def test_of_very_many_items_the_first_are_summarized():
    short = shorten_nested(list(range(200_000)), 300)
    assert "of the first 50,000: 0 to 49999" in short[10]


def test_of_large_records_it_is_said_that_some_were_read(monkeypatch):
    monkeypatch.setattr(summary, "MAX_VALUES", 2_000)
    rows = [{"key": f"k{n}", "kind": "ab"[n % 2]} for n in range(5_000)]
    [note] = [item for item in shorten_nested(rows, 300) if isinstance(item, str)]
    assert "all: " not in note
    assert note.startswith("... 4,980 of 5,000 items left out; key str: about all distinct; kind")
    assert note.endswith(
        '"about", "at least", %: of 1,000 rows spread over the table; rare values and gaps may be '
        "missing there ..."
    )


def test_what_contains_itself_and_what_is_nested_without_end_is_left_to_json():
    loop = []
    loop.extend([loop, loop, loop])
    assert shorten_nested(loop, 300) is loop
    doubled = [1]
    for _ in range(60):
        doubled = [doubled, doubled]
    assert shorten_nested(doubled, 300) is doubled
