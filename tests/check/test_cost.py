"""What tools cost in tokens, and what would save most."""

import sys

import pytest
from linted import make_subject
from planted_faults import ADD, run_check, write_notebook

from mcp_notebook.check import cost
from mcp_notebook.check.subject import Answer
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions


@pytest.fixture(autouse=True)
def estimated(monkeypatch):
    """Without tiktoken, wherever the tests run."""
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    cost.load_tokenizer.cache_clear()
    yield
    cost.load_tokenizer.cache_clear()


def make_tools(count=1, description="Rows of a table.", **schema):
    def look(**arguments):
        return arguments

    options = {
        "description": description,
        "input_schema": {"type": "object", "properties": schema, "additionalProperties": False},
    }
    return [
        make_tool(look, ToolOptions(name=f"look_{number}", **options)) for number in range(count)
    ]


def list_savings(tools, answers=()):
    subject = make_subject([], tools)
    notes = cost.find_savings(type(subject)(**vars(subject) | {"answers": answers}))
    return [(note.tool, note.rule) for note in notes]


def make_answer(tool, text):
    result = {"content": [{"type": "text", "text": text}]}
    return Answer(tool=tool, arguments={}, era="modern", result=result, seconds=0.0)


def test_a_tool_that_costs_little_has_no_notes():
    assert list_savings(make_tools(x={"type": "integer"})) == []


def test_a_long_description_a_long_parameter_and_a_long_answer_are_named_the_longest_first():
    choices = {"enum": [f"choice {number}" for number in range(100)], "type": "string"}
    tools = make_tools(description="word " * 400, x=choices)
    answer = make_answer("look_0", "row " * 5_000)
    assert list_savings(tools, [answer]) == [
        ("look_0", "costly-answer"),
        ("look_0", "costly-description"),
        ("look_0", "costly-parameter"),
    ]


def test_no_more_than_three_savings_are_named():
    assert len(list_savings(make_tools(9, description="word " * 400))) == 3


def test_many_tools_can_be_searched_instead():
    [(tool, rule)] = list_savings(make_tools(100, description="word " * 20))
    assert (tool, rule) == (None, "costly-list")


@pytest.mark.slow
def test_without_a_tokenizer_the_report_says_that_it_estimates(home):
    shown = run_check(home, write_notebook(home, ADD)).stdout
    assert "of entries in each turn (" in shown
    assert shown.endswith("No findings.\n")


def test_an_estimate_is_a_quarter_of_the_characters():
    assert cost.count_tokens("x" * 41) == 11
    assert "estimated" in cost.describe_cost(make_subject([], make_tools()))


def test_with_a_tokenizer_tokens_are_counted(monkeypatch):
    class Encoding:
        def encode_ordinary(self, text):
            return text.split()

    class Tiktoken:
        def get_encoding(self, _name):
            return Encoding()

    monkeypatch.setitem(sys.modules, "tiktoken", Tiktoken())
    cost.load_tokenizer.cache_clear()
    assert cost.count_tokens("three short words") == 3
    assert "counted with tiktoken" in cost.describe_cost(make_subject([], make_tools()))


def test_a_tokenizer_without_its_vocabulary_is_not_used(monkeypatch):
    class Tiktoken:
        def get_encoding(self, _name):
            raise ConnectionError

    monkeypatch.setitem(sys.modules, "tiktoken", Tiktoken())
    cost.load_tokenizer.cache_clear()
    assert cost.count_tokens("x" * 8) == 2
