"""The reference pages: they list what the code offers, all of it and nothing else."""

import inspect
import pydoc
import re
from dataclasses import fields
from pathlib import Path

import make_reference
import pytest
import typer
from documents import DOCUMENTS, page

import mcp_notebook
from mcp_notebook import Context, mcp_tool, meta_keys
from mcp_notebook.cli import main
from mcp_notebook.kernel.notebook.magics.magics import McpMagics
from mcp_notebook.kernel.notebook.magics.mcp_verbs import VERBS
from mcp_notebook.kernel.results.values import RULES
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.settings.limits import is_limit
from mcp_notebook.settings.settings import Settings

INLINE = [text for document in DOCUMENTS for text in document.inline]


@pytest.mark.parametrize("name", make_reference.PAGES)
def test_a_generated_page_is_the_one_that_the_code_gives(name):
    assert page(f"reference/{name}").text == make_reference.PAGES[name](), (
        "run `python docs/make_reference.py`"
    )


@pytest.mark.parametrize("name", make_reference.PARTS)
def test_a_generated_part_of_a_page_is_the_one_that_the_code_gives(name):
    text = page(name).text
    assert text == make_reference.fill_in(text, make_reference.PARTS[name]()), (
        "run `python docs/make_reference.py`"
    )


def test_every_verb_and_option_of_the_command_is_documented():
    command = typer.main.get_command(main.app)
    documented = page("reference/cli.md")
    text = "\n".join([*documented.inline, *documented.code("text")])
    missing = []
    for name, lazy in command.commands.items():
        verb = lazy.load()
        if f"mcp-notebook {name}" not in documented.text:
            missing.append(name)
        for parameter in verb.params:
            if getattr(parameter, "hidden", False):
                continue
            options = [option for option in parameter.opts if option.startswith("--")]
            missing += [option for option in options if option not in text]
    assert missing == []


def test_every_magic_verb_is_documented():
    for verb in VERBS:
        assert any(text.startswith(f"%mcp {verb}") for text in INLINE), verb
        assert any(text.startswith(f"%mcp {verb}") for text in page("getting-started.md").inline), (
            verb
        )
    assert "%%mcp_tool" in INLINE


def test_the_table_of_options_has_every_option_of_the_magic_and_every_keyword_and_no_other():
    rows = re.findall(
        r"^\| (.*?) ?\| (.+?) \| .+ \|$", page("reference/options.md").text, re.MULTILINE
    )[2:]
    on_the_line = {option for line, _ in rows for option in re.findall(r" (--[\w-]+)", line)}
    parser = McpMagics.mcp_tool.parser
    assert on_the_line == {*parser._option_string_actions} - {"-h", "--help"}
    keywords = {keyword for _, cell in rows for keyword in re.findall(r"(\w+)=", cell)}
    assert keywords == {option.name for option in fields(ToolOptions)} | {"prefix"}
    named = [
        parameter.name
        for parameter in inspect.signature(mcp_tool).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    assert named == [option.name for option in fields(ToolOptions)]


def test_the_options_of_the_documents_are_ones_that_the_magic_takes():
    for text in INLINE:
        if text.startswith("%%mcp_tool --"):
            McpMagics.mcp_tool.parser.parse_argstring(text.removeprefix("%%mcp_tool "))


def test_the_table_of_meta_has_every_key_of_ours():
    rows = re.findall(r"^\| `([\w.-]+/\w+)` \|", page("reference/options.md").text, re.MULTILINE)
    ours = [key for name, key in vars(meta_keys).items() if name.isupper() and name[0] != "_"]
    assert sorted([meta_keys.PREFIX, *rows]) == sorted(ours)


def test_everything_that_a_context_can_do_is_in_the_guide():
    documented = " ".join(page("guides/long-calls.md").inline)
    for name in dir(Context):
        if not name.startswith("_"):
            assert f"ctx.{name}" in documented, name


def test_every_setting_is_documented_with_its_variable_and_default():
    text = page("reference/settings.md").text
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| ([^|]+) \|", text, re.MULTILINE)
    table = {name: (variable, default) for name, variable, default in rows}
    options = [option for option in fields(Settings) if not is_limit(option)]
    assert sorted(table) == sorted(option.name for option in options)
    settings = Settings(home=Path("~/.mcp-notebook"))
    for option in options:
        variable, default = table[option.name]
        assert variable == option.metadata["env"]
        value = getattr(settings, option.name)
        if value is not None:
            assert default == f"`{value}`"


def test_every_rule_for_values_is_documented():
    text = page("reference/values.md").text
    for rule in RULES:
        assert f"| {rule.values} | {rule.content} |" in text


def test_the_page_of_the_api_has_every_public_name_and_no_other():
    text = page("reference/api.md").text
    names = re.findall(r"^\.\. (?:auto|py:)\w+:: ([\w.]+)$", text, re.MULTILINE)
    public = [name for name in names if "." not in name]
    assert sorted(public) == sorted(mcp_notebook.__all__)
    for name in set(names) - set(public):
        assert pydoc.locate(name) is not None, name
