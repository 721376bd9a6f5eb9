"""The table of options: complete, true, and the same on a magic's line and in Python."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields

import pytest

from mcp_notebook.kernel.notebook.magic_line import build_options
from mcp_notebook.kernel.notebook.magics.magics import McpMagics
from mcp_notebook.kernel.tools.option_table import list_options
from mcp_notebook.kernel.tools.options import ToolOptions, check_options

PARSER = McpMagics.mcp_tool.parser
ROWS = {row.name: row for row in list_options()}


def evaluate(keyword):
    with ThreadPoolExecutor(1) as pool:
        return ToolOptions(**eval(f"dict({keyword})", {"pool": pool}))


def test_each_option_has_a_row_in_the_order_of_the_fields():
    assert list(ROWS) == [item.name for item in fields(ToolOptions)]


@pytest.mark.parametrize("name", ROWS)
def test_a_row_says_in_whole_sentences_what_its_option_does(name):
    row = ROWS[name]
    assert re.fullmatch(r"[A-Z].{30,}\.", row.text)
    assert "``" not in row.text
    assert row.text.count("`") % 2 == 0
    assert row.kind
    assert row.default


@pytest.mark.parametrize("name", ROWS)
def test_the_example_of_a_keyword_sets_this_option_and_is_accepted(name):
    row = ROWS[name]
    assert row.keyword.startswith(f"{name}=")
    others = {"cache": "read_only=True", "allow": "ui='map'"}  # without which they are refused
    options = evaluate(", ".join([row.keyword, *filter(None, [others.get(name)])]))
    check_options(options, "sales")
    field = next(item for item in fields(ToolOptions) if item.name == name)
    assert field.default is not MISSING
    assert getattr(options, name) != field.default


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.line])
def test_the_example_on_a_line_says_the_same_as_the_keyword(name):
    row = ROWS[name]
    read = build_options(PARSER.parse_argstring(row.line[0].replace("'", '"')))
    given = evaluate(row.keyword)
    if isinstance(getattr(given, name), list):
        assert list(getattr(read, name)) == getattr(given, name)
    elif name == "description":
        assert read.description.strip("\"'") == given.description
    else:
        assert getattr(read, name) == getattr(given, name)


def words_of(row):
    """Return the words of the magic's line without values: ``--output-schema``."""
    return tuple(example.partition(" ")[0] for example in row.line)


def test_every_word_of_the_magic_s_line_is_in_the_table():
    words = {word for row in ROWS.values() for word in words_of(row)}
    others = {"-h", "--help", "--prefix"}
    assert words == {*PARSER._option_string_actions} - others
