"""Suggestions, counts, and text without terminal codes."""

import pytest

from mcp_notebook.text.wording import (
    count,
    escape_around,
    format_seconds,
    format_size,
    strip_escapes,
    suggest,
)


def test_the_closest_known_word_is_suggested():
    assert suggest("reigon", ["year", "region", "regions_of"]) == "region"


def test_nothing_is_suggested_where_nothing_is_close():
    assert suggest("zebra", ["year", "region"]) is None
    assert suggest("zebra", []) is None


@pytest.mark.parametrize(
    ("number", "words", "text"),
    [
        (0, ("call",), "0 calls"),
        (1, ("call",), "1 call"),
        (1000, ("call",), "1,000 calls"),
        (1, ("entry", "entries"), "1 entry"),
        (2, ("entry", "entries"), "2 entries"),
    ],
)
def test_a_count_agrees_with_its_noun(number, words, text):
    assert count(number, *words) == text


def test_sizes_are_said_as_people_say_them():
    sizes = (0, 999, 1_000, 1_048_576, 10**10, 10**20)
    said = ["0 bytes", "999 bytes", "1 kB", "1.05 MB", "10 GB", "100,000,000 TB"]
    assert [format_size(size) for size in sizes] == said


@pytest.mark.parametrize(
    "code", ["\x1b[31m", "\x1b[?25l", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1bM"]
)
def test_escape_codes_are_removed_and_found(code):
    text = f"before{code}after"
    assert strip_escapes(text) == "beforeafter"
    inside = len("before") + 1
    assert escape_around(text, inside) == (len("before"), len("before") + len(code))
    assert escape_around(text, 2) == (2, 2)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0123, "12 ms"),
        (1, "1.0 s"),
        (59.94, "59.9 s"),
        (90, "2 min"),
        (9000, "2.5 h"),
    ],
)
def test_a_duration_has_a_unit_that_suits_it(seconds, text):
    assert format_seconds(seconds) == text
