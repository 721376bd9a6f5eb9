"""One function becomes a tool: its name, what is refused, and the mark that a decorator leaves."""

import functools
import re
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook import meta_keys
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.context import Context
from mcp_notebook.kernel.tools.declared_tool import (
    find_marked,
    make_tool,
    mark,
    read_mark,
    read_own_mark,
)
from mcp_notebook.kernel.tools.options import PromptOptions, ToolOptions


def rain(year: int = 2012) -> dict[str, float]:
    """Rain per month."""
    return {"1": year}


sales = eval("lambda 売上=1: 売上")
sales.__name__ = "sales"


@pytest.mark.parametrize(
    ("options", "variable", "name"),
    [
        ({}, None, "rain"),
        ({}, "shower", "shower"),
        ({"name": "drizzle"}, "shower", "drizzle"),
    ],
)
def test_a_tool_is_called_as_its_option_its_variable_or_its_function(options, variable, name):
    tool = make_tool(rain, ToolOptions(**options), variable=variable)
    assert (tool.name, tool.info.name, tool.variable) == (name, name, variable)


def test_clients_are_told_both_schemas_and_the_description():
    info = make_tool(rain, ToolOptions(output_schema=True)).info
    assert info.description == "Rain per month."
    assert list(info.input_schema["properties"]) == ["year"]
    assert info.output_schema["type"] == "object"


def test_a_tool_to_be_confirmed_has_another_revision_each_time_it_is_declared():
    first, second = (make_tool(rain, ToolOptions(confirm=True)) for _ in range(2))
    assert first.info.revision != second.info.revision
    assert first.info.meta == {meta_keys.CONFIRM: True}
    assert first.is_confirmed(first.info.revision)
    assert first.is_confirmed(None)  # the author's own call
    assert not first.is_confirmed("")
    assert not first.is_confirmed(second.info.revision)
    other = make_tool(rain)
    assert other.info.revision is None
    assert other.is_confirmed("")


@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (5, {}, "is not a function, but of type int"),
        (functools.partial(rain), {}, "cannot be a tool's name"),
        (rain, {"name": "heavy rain"}, "--name heavy_rain"),
        (rain, {"name": "heavy.rain"}, "reject all tools if one name is invalid"),
        (rain, {"flatten": True, "input_schema": {"type": "object"}}, "both define the schema"),
        (rain, {"timeout": 0}, "`timeout` must be a time"),
        (rain, {"name": "größe_δ"}, "`--name grosse_delta`"),
        (sales, {}, "`sales`: '売上' cannot be a parameter's name: models' APIs accept 1 to 64"),
        (
            lambda **query: query,
            {"name": "query", "input_schema": {"type": "object", "properties": {"$top": {}}}},
            "'$top' cannot be a parameter's name",
        ),
    ],
)
def test_what_cannot_be_a_tool_is_refused(function, options, said):
    with pytest.raises(DefinitionError) as refused:
        make_tool(function, ToolOptions(**options))
    assert said in str(refused.value)


@given(st.text(max_size=80) | st.text("az09_-. é", max_size=70))
def test_every_name_that_is_taken_fits_the_apis_of_models_and_every_other_has_one_that_does(name):
    api = re.compile(r"[a-zA-Z0-9_-]{1,64}")
    try:
        tool = make_tool(rain, ToolOptions(name=name))
    except DefinitionError as refused:
        assert not api.fullmatch(name)
        suggestion = re.search(r"`--name (\S+)`", str(refused))[1]
        assert make_tool(rain, ToolOptions(name=suggestion)).name == suggestion
    else:
        assert api.fullmatch(name)
        assert bool(tool.notes) == (len("mcp__notebook__" + name) > 64)


@given(st.lists(st.from_regex(r"[aεñn_2]{1,3}|a{62,68}", fullmatch=True), unique=True))
def test_every_parameter_of_latin_and_greek_letters_has_a_name_of_its_own_for_models_apis(names):
    names = [name for name in names if name.isidentifier()]
    function = eval(f"lambda {', '.join(names)}: locals()")
    tool = make_tool(function, ToolOptions(name="f"))
    shown = list(tool.info.input_schema["properties"])
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in shown)
    values = tool.validate({name: number for number, name in enumerate(shown)})
    assert values == {name: number for number, name in enumerate(names)}


def test_prompts_keep_the_names_of_their_parameters():
    options = PromptOptions()
    assert list(make_tool(sales, options).info.input_schema["properties"]) == ["売上"]


def test_hints_for_the_author_come_from_the_schema():
    def odd(x, ctx: Context) -> "Nowhere":  # noqa: F821 - an annotation that cannot be read
        return x

    tool = make_tool(odd)
    assert len(tool.schema.warnings) == 1
    assert tool.notes == ("`x` has no type hint: any value is accepted.",)
    assert tool.warnings == (*tool.schema.warnings, *tool.notes)
    assert tool.schema.injected == ("ctx",)


def test_the_authors_schema_may_change_afterwards():
    schema = {"type": "object", "properties": {"year": {"type": "integer"}}}
    tool = make_tool(rain, ToolOptions(input_schema=schema))
    schema["properties"].clear()
    assert list(tool.options.input_schema["properties"]) == ["year"]
    assert list(tool.info.input_schema["properties"]) == ["year"]


# -- the mark --------------------------------------------------------------------------------------


def test_a_mark_is_found_on_the_function_itself_and_through_a_wrapper():
    def plain():
        """P."""

    options = ToolOptions(title="T")
    assert mark(plain, options) is plain
    assert read_mark(plain) is read_own_mark(plain) is options
    assert make_tool(plain).info.title == "T"


def test_a_mark_is_only_what_the_decorator_left():
    assert read_mark(MagicMock()) is None
    assert read_own_mark(MagicMock()) is None
    assert read_mark(rain) is None


def test_a_builtin_cannot_be_marked():
    with pytest.raises(DefinitionError, match="Use `%mcp_tool` with its name instead"):
        mark(len, ToolOptions())


def test_marked_functions_are_found_without_asking_a_proxy():
    class Proxy:
        __slots__ = ()

        def __getattr__(self, name):
            raise AssertionError(name)

    def plain():
        """P."""

    mark(plain, ToolOptions())
    variables = {"a": plain, "b": rain, "c": Proxy(), "d": 5}
    assert list(find_marked(variables.items())) == [("a", plain)]
