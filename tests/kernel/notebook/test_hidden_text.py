"""What a person is told of a proposed source before she decides about it."""

import pytest

from mcp_notebook.kernel.notebook.hidden_text import describe_hidden, parse_source

MAGICS = {"ls", "rm", "sx"}


def tell(source, *, is_code=True):
    tree = parse_source(source) if is_code else None
    return list(describe_hidden(source, tree, MAGICS.__contains__))


FILLERS = "\u034f\u115f\u17b4\u180b\u2800\u3164\ufe00\ufe0f\uffa0\U000e0100\ufeff\x7f"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("x = 'a\u202eb'", "Line 1 has characters that are not seen"),
        ("y = 1\nx = 'a\u200bb'", "Line 2 has characters that are not seen"),
        ("x = '\U000e0041'", "Line 1 has characters that are not seen"),
        ("x = 1\rimport os", "Line 1 has characters that are not seen"),
        ("x = '\u00a0'", "Line 1 has characters that are not seen"),
        ("\u0440\u0430ss = 1", "Line 1 has a name with letters outside ASCII"),
        ("x = 1" + "\n" * 401 + "y = 2", "Line 402 stands below 20 empty lines or more."),
        ("x = '" + "a" * 10_000 + "'", "Line 1 has more than 500 characters: read it to its end."),
        ("x = 1" + " " * 100 + "; y = 2", "Line 1 goes on behind many spaces."),
        ("%%bash\nls", "It runs the cell magic `%%bash`"),
        ("x = !ls", "It runs a command of the shell, `!ls`."),
        ("if 1:\n    !rm x", "It runs a command of the shell, `!rm x`."),
        ("%time x", "It runs the magic `%time`."),
        ("get_ipython().system('rm x')", "It runs a command of the shell, `!rm x`."),
        ("get_ipython().system(cmd='rm x')", "It runs a command of the shell, `!...`."),
        # What looks like the begin of a text or of brackets in a magic is none.
        ('!echo """\n\u0441\u043e\u0440\u0443 = 1\n# """', "Line 2 has a name with letters"),
        ("x = %time '''\n\u0441\u043e\u0440\u0443 = 1\n# '''", "Line 2 has a name with letters"),
        ('%%time\n!echo """\n\u0441 = 1\n# """', "Line 3 has a name with letters"),
        ("# a\r\u0441 = 1", "Line 1 has a name with letters"),
        ("pric\u212e = 1", "Line 1 has a name with letters"),
        ("a\u203fb = 1", "Line 1 has a name with letters"),
        (
            "%%mcp_tool\ndef f():\n    'Text.'\n    !rm x",
            "It runs a command of the shell, `!rm x`.",
        ),
        ("%%time\n%%capture\n!rm x", "It runs a command of the shell, `!rm x`;"),
        ("%a\n%b\n%c\n!rm x", "It runs a command of the shell, `!rm x`;"),
        ("%a\n%b\n%c\n!rm x", "the magic `%b` ..."),
        ("\n\nsx (rm)", "It runs the magic `%sx`, unless"),
        ("rm -rf", "It runs the magic `%rm`, unless"),
        *((f"x = 'a{filler}b'", "Line 1 has characters that are not seen") for filler in FILLERS),
        ("x = '\u26a0\ufe0f\ufe0f'", "Line 1 has characters that are not seen"),
        ("x = 1" + "\t" * 6 + "; y = 2", "Line 1 goes on behind many spaces."),
        ("print('\u05d0', 1, 2, '\u05d1')", "Line 1 has letters that run from right to left"),
        ("print('\u0660', 1, 2, '\u0661')", "Line 1 has letters that run from right to left"),
    ],
)
def test_what_hides_is_told(source, says):
    assert any(says in sentence for sentence in tell(source))


def test_lines_of_one_kind_are_one_sentence():
    """So that many of one kind do not hide another kind."""
    assert tell(("x = 1" + " " * 100 + "; y = 2\n") * 100) == [
        "Line 1, 2, 3 ... goes on behind many spaces."
    ]


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\ny = 2",
        "x = 'Zürich, 日本'  # größer",
        "%%mcp_tool\ndef f():\n    'Text.'",
        "x: int = 'a'  # type: ignore",
        "await f()",
        "x = '\u26a0\ufe0f'",
        "sx = 1\nls",
        "\n\n# größer\nx = f'Zürich {1}'",
    ],
)
def test_of_ordinary_code_nothing_is_told(source):
    assert tell(source) == []


def test_markdown_is_no_code():
    assert tell("!ls\n%%bash", is_code=False) == []
    assert tell("a\u202eb", is_code=False) != []
    assert tell("\u05d0 < 3 and <https://example.com>", is_code=False) == []
    for text in ("![x](//example.com/?q=1)", "<img src=x>", "![x][y]\n\n[y]: //example.com"):
        assert "other computers" in tell(text, is_code=False)[0]


@pytest.mark.parametrize(
    "source",
    ["def f(:", "(" * 5_000, "\0", "x = $", "#\u2028!rm x", "#\x85", "a\u00a0= 1", "!a\n" * 501],
)
def test_what_is_no_code_is_a_syntax_error(source):
    with pytest.raises(SyntaxError):
        parse_source(source)
