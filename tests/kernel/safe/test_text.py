"""Cleaning and cutting texts."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcp_notebook.kernel.safe.text import (
    clean_printed,
    clean_text,
    cut_text,
    describe_bytes,
    describe_error,
    encode_bytes,
    is_sendable,
    replace_surrogates,
    safe_repr,
)

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


@given(st.lists(st.text("abc123.-", min_size=1, max_size=8), min_size=40), st.integers(30, 99))
def test_where_there_is_little_room_whole_words_are_kept_and_the_rest_is_counted(words, size):
    text = " ".join(words)
    made = cut_text(text, size)
    assert len(made) <= size
    if made != text:
        head, rest = re.fullmatch(r"(.*) \[\+([\d,]+)\]", made).groups()
        assert head.split() == words[: len(head.split())]
        assert len(head) + int(rest.replace(",", "")) == len(text)


WORDS = st.text(st.characters(exclude_categories=["Z", "C"], exclude_characters=",;|"), min_size=1)
SPACES = st.sampled_from([" ", "\n", "\t", ", ", ",", "; ", "\n\n", " | "])


@given(
    st.lists(st.tuples(WORDS, SPACES), min_size=30, max_size=300),
    st.integers(300, 2_000),
    st.booleans(),
)
def test_no_cut_is_within_a_word_a_number_or_an_item(parts, size, is_clean):
    assume(all(len(word) < 30 for word, _ in parts))
    text = "".join(word + space for word, space in parts)
    made = cut_text(text, size, is_clean=is_clean)
    if (said := MARKER.search(made)) is None:
        return
    words = [word for word, _ in parts]
    head, tail = (
        re.split(r"[\s,;|]+", part.strip(" \n\t,;|")) if part.strip(" \n\t,;|") else []
        for part in (made[: said.start()], made[said.end() :])
    )
    assert head == words[: len(head)]
    assert tail == words[len(words) - len(tail) :]


def test_the_cut_of_a_long_list_has_no_halves_of_numbers():
    made = cut_text(str(list(range(20_000))), 25_000)
    head, tail = MARKER.split(made)[0], MARKER.split(made)[-1]
    assert head.endswith(",")
    numbers = [int(number) for number in re.findall(r"\d+", head)]
    assert numbers == list(range(len(numbers)))
    numbers = [int(number) for number in re.findall(r"\d+", tail)]
    assert numbers == list(range(20_000 - len(numbers), 20_000))


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
    made = cut_text(text, size, is_clean=False)
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


# -- what objects say about themselves -------------------------------------------------------------


class Broken(Exception):
    def __repr__(self):
        raise SystemExit("no")

    def __str__(self):
        raise SystemExit("no")


def test_a_repr_that_fails_is_a_sentence():
    assert safe_repr([1]) == "[1]"
    assert safe_repr(Broken()) == "<an object of type Broken whose repr failed: SystemExit: no>"
    assert len(safe_repr("x" * 10_000, 500)) <= 500


def test_an_error_is_described_on_one_line_whatever_its_message_does():
    assert describe_error(ValueError("a\n  b\x1b[0m")) == "ValueError: a b"
    assert describe_error(ValueError()) == "ValueError"
    assert describe_error(Broken()) == "Broken (whose message cannot be read)"


def test_the_interrupt_that_stops_a_call_is_not_a_failed_repr():
    class Stops:
        def __repr__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        safe_repr(Stops())


@pytest.mark.parametrize("before", [0, 300, 2**16 - 1, 2**16, 2**17])
@given(st.text(st.characters(max_codepoint=0x9F) | st.characters(), max_size=3))
def test_what_cannot_be_sent_is_replaced_wherever_it_is_in_a_text(before, text):
    assume("\x1b" not in text)
    made = clean_text(f"{'é' * before}{text}{'x' * before}")
    assert made == f"{'é' * before}{clean_text(text)}{'x' * before}"
    is_text = clean_text(text) == text
    if text.isprintable():
        assert is_text
    if before and not re.search("[\ud800-\udfff]", text):
        data = f"{'é' * before}{text}".encode()
        assert describe_bytes(data).startswith("é") == is_text


def test_bytes_are_text_where_they_are_text():
    assert describe_bytes(b"a\0") == "<2 bytes: 61 00>"
    assert (describe_bytes(b"a"), encode_bytes(b"a")) == ("a", "a")
    assert describe_bytes(b"\xff" * 20) == f"<20 bytes: {'ff ' * 16}...>"
    assert encode_bytes(b"\xff") == "/w=="


def test_only_lone_surrogates_are_replaced():
    assert replace_surrogates("a\x00\x1b[0m\ud800\U0001f600") == "a\x00\x1b[0m\ufffd\U0001f600"


def test_a_long_line_after_a_progress_bar_takes_linear_time():
    # An hour, when each character was looked at as a beginning of the line.
    assert clean_printed("10%\r" + "a" * 2_000_000) == "a" * 2_000_000
