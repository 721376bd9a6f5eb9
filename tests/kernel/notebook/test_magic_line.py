"""The line of the magics: a signature, names and options in any order, and wrong ones."""

import pytest

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.notebook.magic_line import (
    build_options,
    list_option_words,
    read_line,
    read_view_line,
)
from mcp_notebook.kernel.notebook.magics.magics import McpMagics

PARSER = McpMagics.mcp_tool.parser


def read(line, cell="1\n", expand=str):
    return read_line(PARSER, line, cell, expand)


@pytest.mark.parametrize(
    ("line", "name", "rest"),
    [
        ("f()", "f", "()"),
        ("f (a: int)", "f", "(a: int)"),
        ("f(a=')', b=\"(\") -> int", "f", "(a=')', b=\"(\") -> int"),
        ("f(a) -> dict[str, int] | None --title T", "f", "(a) -> dict[str, int] | None"),
        ("f(a) -> 'A -- b'", "f", "(a) -> 'A -- b'"),
        ("f(a)->int --title T", "f", "(a)->int"),
        ("--title T f(a)", "f", "(a)"),
        ("--title 'T (b)' --read-only f(a)", "f", "(a)"),
        ("--title T(b) f(a)", "f", "(a)"),
        ("--title=T(b) f(a)", "f", "(a)"),
        ("f(a: 'x') --description \"What's (it)?\"", "f", "(a: 'x')"),
        ("f(a=--1) --title T", "f", "(a=--1)"),
        ("my-tool(a)", "my-tool", "(a)"),
    ],
)
def test_a_signature_is_found_among_options(line, name, rest):
    signature = read(line).signature
    assert (signature.name, signature.rest) == (name, rest)
    assert line[signature.column :].startswith(name)


def test_options_stand_before_and_after_the_signature():
    line = read("--title 'A b' f(a) --timeout 30s --tag x --tag \"y z\" --priority -2.5")
    options = build_options(line.options)
    assert (options.title, options.timeout, options.priority) == ("A b", "30s", -2.5)
    assert options.tags == ("x", "y z")


def test_examples_are_written_as_in_a_call():
    line = "--example year=2015 --example 'year=-2, city=Bern, days=[1, \"b\"]' --example ''"
    examples = build_options(read(line).options).examples
    assert examples == ({"year": 2015}, {"year": -2, "city": "Bern", "days": [1, "b"]}, {})


@pytest.mark.parametrize("text", ["2015", "year=", "**all", f"year={'-' * 9_000}1"])
def test_an_example_that_is_no_call_is_refused(text):
    with pytest.raises(DefinitionError, match="takes arguments as in a call"):
        build_options(read(f"--example '{text}'").options)


def test_required_capabilities_may_be_repeated_or_stand_in_one_list():
    assert build_options(read("--requires elicitation").options).requires == ("elicitation",)
    options = build_options(read("--requires a,b --requires c").options)
    assert options.requires == ("a", "b", "c")


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("--description '- one'", "- one"),
        ("--description '--x'", "--x"),
        ('--description="a b"', "a b"),
        ("--description 'a' --title x", "a"),
        (r"--description 'C:\new'", r"C:\new"),
        ("--description ''", ""),
    ],
)
def test_a_value_is_what_stands_in_its_quotes(line, description):
    assert build_options(read(line).options).description == description


def test_variables_of_the_notebook_go_into_options_and_not_into_the_signature():
    line = read("--title {t} f(a={t})", expand=lambda text: text.replace("{t}", "T"))
    assert line.options.title == "T"
    assert line.signature.rest == "(a={t})"


def test_a_signature_over_several_lines_leaves_the_rest_of_the_cell():
    line = read("f(a,", "  b=(1,\n 2)) --title T\nbody\n")
    assert line.signature.rest == "(a,\n  b=(1,\n 2))"
    assert (line.options.title, line.body) == ("T", "body\n")
    assert line.head == "f(a,\n  b=(1,\n 2)) --title T"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--timout 3", "There is no option `--timout`. Did you mean `--timeout`?"),
        ("--tim 3", "There is no option `--tim`."),
        ("-x", "There is no option `-x`."),
        ("--timeout", "`--timeout` needs a value"),
        ("--timeout --read-only", "`--timeout` needs a value"),
        ("--priority high", "`--priority` must be a number, not 'high'."),
        ("--max-concurrency 1.5", "`--max-concurrency` must be a whole number, not '1.5'."),
        ("--read-only=yes", "`--read-only` takes no value"),
        ("--description What's", "is not closed"),
        ("f(a: int", "does not end: close its parenthesis"),
        ("f(a: 'x", "does not end: close its parenthesis"),
        ("f(a]", "does not end"),
    ],
)
def test_a_wrong_line_gets_one_sentence_that_says_what_to_do(line, said):
    with pytest.raises(DefinitionError) as caught:
        read(line)
    assert said in str(caught.value)


def test_the_words_are_those_that_the_parser_knows():
    assert set(list_option_words()) == {
        word for word in PARSER._option_string_actions if word != "-h"
    }


@pytest.mark.parametrize(
    ("line", "ui"),
    [
        ("f", None),
        ("f --ui", True),
        ("--ui --read-only f", True),
        ("f --no-ui", False),
        ("f --ui view.html", "view.html"),
        ("--ui=map f", "map"),
        ("--ui map f", "map"),
        ("f --ui 'my view.html'", "my view.html"),
        ("--ui f(a: int) --read-only", True),
        ("--ui map f(a: int)", "map"),
    ],
)
def test_a_view_has_a_name_or_is_only_switched_on_or_off(line, ui):
    assert build_options(read(line).options).ui == ui


def test_hosts_stand_in_one_list_or_in_several():
    options = build_options(read("f --allow a.org,b.org --allow c.org").options)
    assert options.allow == ("a.org", "b.org", "c.org")
    assert read_view_line("map --allow a.org b.org, --allow=c.org,d.org") == (
        "map",
        ("a.org", "b.org", "c.org", "d.org"),
    )
