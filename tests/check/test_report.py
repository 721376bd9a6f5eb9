"""What tools cost in tokens."""

from linted import declare, make_subject

from mcp_notebook.check.report import count_tokens, describe_cost


def test_tokens_are_estimated_as_a_quarter_of_the_characters():
    assert count_tokens("x" * 41) == 11


def test_the_cost_is_that_of_all_entries(shell):
    cells = [f'%%mcp_tool\ndef add_{n}(a: int):\n    """{"word " * 400}"""' for n in (1, 2)]
    subject = make_subject(cells, declare(shell, cells))
    assert describe_cost(subject).startswith("A model reads about 1,0")
