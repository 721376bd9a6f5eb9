"""The text of a cell: short, exact enough, and safe whatever is in it."""

import math
import re
from datetime import datetime, tzinfo
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.kernel.results.tables.cell_text import (
    MAX_CELL,
    QuotedText,
    format_cell,
    format_column,
    has_cut_cells,
    quote_unclear,
    separate_floats,
    strip_midnights,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (1234567.891, "1234567.891"),
        (2.0, "2.0"),
        (1e-7, "1e-07"),
        (1e20, "1e+20"),
        (float("inf"), "inf"),
        (float("nan"), "NaN"),
        (-0.5, "-0.5"),
        (0.0, "0.0"),
        (0.0001234567, "0.000123457"),
        (0.9999999, "0.9999999"),
        (3.0000001, "3.0000001"),
        (3.0000000000000004, "3.0"),
        (0.30000000000000004, "0.3"),
        (float(2**53), "9007199254740992.0"),
        (1e15, "1000000000000000.0"),
    ],
)
def test_floats_are_as_exact_as_in_the_notebook(number, text):
    assert format_cell(number) == text


def test_floats_follow_the_users_own_format():
    pd = pytest.importorskip("pandas")
    with pd.option_context("display.float_format", "{:.1f} EUR".format):
        assert format_cell(1.25) == "1.2 EUR"
    with pd.option_context("display.precision", 2):
        assert format_cell(1.2345) == "1.23"
        assert separate_floats([1.2345, 1.2346], ["1.23", "1.23"]) == ["1.23", "1.23"]
    with pd.option_context("display.precision", 0):
        assert [format_cell(3.0), format_cell(2.6)] == ["3", "3"]


@pytest.mark.parametrize("value", [[7] * 10**6, ("ab",) * 10**6, {n: n for n in range(10**5)}])
def test_a_long_collection_is_shortened_and_says_so(value):
    text = format_cell(value)
    assert MAX_CELL - 60 < len(text) <= MAX_CELL
    assert text.endswith((", [+more]", ": [+more]"))
    assert has_cut_cells([text])


@given(st.lists(st.text("ab1.", min_size=1, max_size=20), min_size=120, max_size=500))
def test_a_long_text_is_cut_between_words_and_says_how_much_follows(words):
    value = " ".join(words)
    text = str(format_cell(value))
    kept, more = re.fullmatch(r"(.*) \[\+([\d,]+)\]", text).groups()
    assert len(text) <= MAX_CELL
    assert kept.split() == words[: len(kept.split())]
    assert len(kept) + int(more.replace(",", "")) == len(value)
    assert has_cut_cells([text])


def test_an_array_in_a_cell_whose_text_leaves_elements_out_says_so():
    numpy = pytest.importorskip("numpy")
    assert has_cut_cells([format_cell(numpy.arange(5_000))])
    assert not has_cut_cells([format_cell(numpy.arange(5))])
    assert not has_cut_cells([format_cell("a list [+] and [+1] more")])


def test_control_characters_are_removed_and_surrounding_spaces_are_not():
    assert format_cell("  \x1b[31mred\x1b[0m\n") == "  red\n"


@pytest.mark.parametrize("text", ["", "NaN", "none", "<NA>", "N/A", " NaN", "x ", "\tx"])
def test_a_text_that_looks_like_a_missing_value_or_has_spaces_around_it_is_quoted(text):
    assert type(format_cell(text)) is QuotedText


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a b", "a b"),
        ("  lead", '"  lead"'),
        ("a\r\nb", '"a\\r\\nb"'),
        ('"a"', '"\\"a\\""'),
        ('say "a"', 'say "a"'),
        ("é\n", '"é\\n"'),
    ],
)
def test_a_text_on_a_line_of_its_own_is_json_if_its_ends_would_not_be_seen(text, line):
    assert quote_unclear(text) == line


def test_a_cell_whose_code_fails_says_so():
    class Broken:
        def __str__(self):
            raise SystemExit("no")

        __repr__ = __str__

    assert format_cell(Broken()) == "<an object of type Broken whose repr failed: SystemExit: no>"


def test_stopping_the_call_is_not_a_failure_of_the_cell():
    class Stops:
        def __str__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        format_cell(Stops())


def test_midnights_are_removed_from_a_column_of_days_only():
    pd = pytest.importorskip("pandas")
    days = [pd.Timestamp("2024-01-01"), pd.NaT]
    hours = [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01 05:00")]
    assert strip_midnights(days, [*map(str, days)]) == ["2024-01-01", "NaT"]
    assert strip_midnights(hours, [*map(str, hours)]) == [*map(str, hours)]
    texts = [pd.Timestamp("2024-01-01"), "at 00:00:00"]
    assert strip_midnights(texts, [*map(str, texts)]) == ["2024-01-01", "at 00:00:00"]


class Zone(tzinfo):
    """A time zone whose own code fails."""

    def utcoffset(self, _when):
        raise RuntimeError("no zone")


def is_nan(value):
    return value.is_nan() if isinstance(value, Decimal) else math.isnan(value)


def test_a_time_whose_zone_fails_costs_only_its_own_cell():
    values = [datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=Zone())]  # noqa: DTZ001 - naive
    first, second = format_column(values, nan_is_missing=False)
    assert first == "2024-01-01 00:00:00"
    assert second.startswith("datetime.datetime(2024, 1, 1, 0, 0, tzinfo=")
