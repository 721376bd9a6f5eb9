"""Cleaning and cutting texts."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcp_notebook.kernel.safe.text import clean_printed, clean_text, cut_text, is_sendable

CODES = st.sampled_from(
    ["\x1b[31m", "\x1b[0m", "\x1b[38;5;208;1m", "\x1b]8;;https://e.org\x1b\\", "\x1b]0;t\x07"]
)
COLOURED = st.lists(CODES | st.sampled_from(["word ", "\n", "ä", "\ud800", "\x00"]), max_size=400)
MARKER = re.compile(r"\n\[\.\.\. ([\d,]+) of ([\d,]+) characters.* left out \.\.\.\]\n")


def test_a_long_text_is_cut_at_ends_of_lines_and_says_how_much_is_gone():
    text = "".join(f"line {number}\n" for number in range(1_000))
    made = cut_text(text, 500)
    head, tail = MARKER.split(made)[0], MARKER.split(made)[-1]
    assert text.startswith(head + "\n")
    assert text.endswith("\n" + tail)
    gone = len(text) - len(head) - len(tail)
    lines = text[len(head) : len(text) - len(tail)].count("\n")
    assert f"[... {gone:,} of 8,890 characters, {lines} of 1,001 lines, left out ...]" in made


def test_a_text_without_lines_is_cut_anywhere():
    made = cut_text("x" * 1_000, 300)
    assert 270 < len(made) <= 300
    assert re.sub(r"[\d,]+ of", "N of", made).strip("x") == (
        "\n[... N of 1,000 characters left out ...]\n"
    )


@pytest.mark.parametrize("size", [0, 1, 50, 99])
def test_where_there_is_no_room_to_say_so_the_beginning_is_kept(size):
    assert cut_text("abc" * 1_000, size) == ("abc" * 1_000)[:size]


@given(st.text(min_size=300), st.integers(200, 1_000))
def test_a_cut_text_keeps_to_its_size_and_tells_the_truth(text, size):
    assume("left out" not in text)
    text *= 5
    made = cut_text(text, size)
    assert len(made) <= size
    if len(text) <= size:
        assert made == text
        return
    said = MARKER.search(made)
    head, tail = made[: said.start()], made[said.end() :]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert int(said[1].replace(",", "")) == len(text) - len(head) - len(tail)
    assert int(said[2].replace(",", "")) == len(text)


@given(COLOURED, st.integers(200, 600))
def test_what_is_cut_before_it_is_cleaned_has_no_pieces_of_codes(parts, size):
    text = "".join(parts) * 3
    made = cut_text(text, size, cleaned=False)
    assert len(made) <= size
    whole = clean_text(text)
    said = MARKER.search(made)
    if said is None:
        assert made == whole
        return
    assert whole.startswith(made[: said.start()])
    assert whole.endswith(made[said.end() :])


def test_codes_control_characters_and_lone_surrogates_are_taken_out():
    assert clean_text("\x1b[1ma\x1b[0m\x00b\ud800c\td\n") == "a\ufffdb\ufffdc\td\n"


def test_of_a_progress_bar_the_last_state_is_kept():
    assert clean_printed("10%\r50%\r100%\ndone\r\n") == "100%\ndone\n"


@pytest.mark.parametrize(("text", "says"), [("", False), (" \n\t\u2003", False), (" a ", True)])
def test_a_text_of_spaces_says_nothing(text, says):
    assert is_sendable(text) is says
