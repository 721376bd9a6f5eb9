"""The fields in the Markdown of a prompt: arguments are data, and mistakes are sentences."""

from datetime import date
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.notebook.prompt_text import PromptText


class Size(Enum):
    LARGE = "large"


def fill(text, **arguments):
    return PromptText.parse(text, arguments, "report").fill(arguments)


@given(st.text(), st.text())
def test_what_a_client_sends_comes_out_unchanged(first, second):
    text = fill("<{first}|{{first}}|{second}{second}>", first=first, second=second)
    assert text == f"<{first}|{{first}}|{second}{second}>"


@given(st.text())
def test_any_text_is_itself_once_its_braces_are_doubled(text):
    assert fill(text.replace("{", "{{").replace("}", "}}")) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2026, "2026"),
        (1.5, "1.5"),
        (True, "true"),
        (None, ""),
        (date(2026, 1, 2), "2026-01-02"),
        (Size.LARGE, "large"),
        (["a", Size.LARGE, 1], "a, large, 1"),
        ("{year.__class__}", "{year.__class__}"),
    ],
)
def test_values_are_written_as_clients_write_them(value, text):
    assert fill("{year}", year=value) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{yaer}", "Did you mean `{year}`?"),
        ("{month}", "add it to the signature, or write `{{month}}` for text in braces"),
        ("{year.real}", "Did you mean `{year}`?"),
        ("{year!r}", "Did you mean `{year}`?"),
        ("{year:>10}", "Did you mean `{year}`?"),
        ("{year[0]}", "Did you mean `{year}`?"),
        ("{}", "a field is only a parameter's name"),
        ('{"a": 1}', "a field is only a parameter's name"),
        ("a } b", "a brace in its text is not a pair"),
        ("a { b", "a brace in its text is not a pair"),
    ],
)
def test_a_mistake_is_refused_in_a_sentence_when_the_prompt_is_declared(text, words):
    with pytest.raises(DefinitionError) as caught:
        fill(text, year=1)
    assert words in str(caught.value)
