"""What a tool says about itself, and what is refused at definition."""

import json
import math
import re
from datetime import date
from fractions import Fraction
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator
from refusals import refusal_of

from mcp_notebook import meta_keys
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.metadata import add_result_size
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry


def rain(city: str, year: int = 2012) -> str:
    """Rain per year."""
    return f"{city} {year}"


def info(**options):
    return make_tool(rain, ToolOptions(**options)).info


def refusal(**options):
    message = refusal_of(make_tool, rain, ToolOptions(**options))
    assert len(message) < 1000
    return message


class Angry:
    def __repr__(self):
        raise RuntimeError("no repr")

    def __bool__(self):
        raise RuntimeError("no truth")

    def __iter__(self):
        raise RuntimeError("no items")


# -- name, title, description ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my tool", "Try `--name my_tool` (in Python `name='my_tool'`)."),
        ("ünïcode", "`--name unicode`"),
        ("x" * 65, "`--name " + "x" * 64 + "`"),
        ("x" * 100_000, "..."),
        ("!!!", "`--name my_tool`"),
        (5, "a string, not of type int"),
        (MagicMock(), "a string, not of type MagicMock"),
    ],
)
def test_a_name_that_mcp_does_not_allow_is_refused_with_one_that_would_do(name, said):
    assert said in refusal(name=name)


@given(st.text(min_size=1))
def test_the_name_that_is_suggested_is_allowed(name):
    try:
        info(name=name)
    except DefinitionError as error:
        suggested = re.search(r"`--name (\S+)`", str(error))[1]
        assert info(name=suggested).name == suggested


def test_title_and_description_are_texts_that_clients_can_take():
    said = info(title="A \ud800 title", description="Line\n\x1b[31mred\x1b[0m")
    assert said.title == "A \ufffd title"
    assert said.description == "Line\nred"
    assert "`title` must be a string" in refusal(title=5)
    assert "`description` must be a string" in refusal(description=["a"])


# -- hints -----------------------------------------------------------------------------------------


def test_only_the_hints_that_the_author_gave_are_told():
    assert info().annotations is None
    assert info(read_only=True).annotations == {"readOnlyHint": True}
    assert info(read_only=False, destructive=True, idempotent=False, open_world=False).annotations
    assert info(read_only=True, destructive=False).annotations == {
        "readOnlyHint": True,
        "destructiveHint": False,
    }


@pytest.mark.parametrize("option", ["read_only", "destructive", "idempotent", "open_world"])
@pytest.mark.parametrize("value", [1, "yes", np.True_, Angry()])
def test_a_hint_is_true_or_false(option, value):
    assert f"`{option}` must be True or False" in refusal(**{option: value})


# -- examples --------------------------------------------------------------------------------------


def test_examples_are_a_section_of_the_description_in_json():
    assert info(examples=[{"city": "Zürich"}, {"city": "a", "year": 1}]).description == (
        'Rain per year.\n\nExamples of arguments:\n- {"city": "Zürich"}\n- {"city": "a", "year": 1}'
    )
    assert info(examples={"city": "Oslo"}, description="").description == (
        'Examples of arguments:\n- {"city": "Oslo"}'
    )


def test_an_example_is_written_as_a_client_would_send_it():
    def f(day: date, share: float): ...

    tool = make_tool(f, ToolOptions(examples=[{"day": date(2012, 1, 2), "share": np.float64(0.5)}]))
    assert '{"day": "2012-01-02", "share": 0.5}' in tool.info.description


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        ([{"city": "a"}, {"year": 1}], 'its example 2, {"year": 1}, does not match the tool'),
        ([{"city": "a", "year": "x"}], "year"),
        ([{"city": "a", "yer": 1}], "yer"),
        ([{"city": math.nan}], "cannot be written as JSON"),
        ([{"city": "\ud800"}], "cannot be written as JSON"),
        ([{"city": object()}], "cannot be written as JSON"),
        ([{"city": Angry()}], "example 1"),
        ([{5: "a"}], "not a dict of arguments"),
        (["city"], "not a dict of arguments"),
        ("city", "`examples` must be a list"),
        (5, "`examples` must be a list"),
        ([{"city": "a" * 5_000}], "5,012 characters"),
        ([[Angry()]], "not a dict of arguments"),
    ],
)
def test_an_invalid_example_is_refused_with_its_number_and_the_reason(examples, said):
    assert said in refusal(examples=examples)


def test_a_validator_of_the_authors_sees_a_copy_of_an_example_and_may_raise_anything():
    class Order(BaseModel):
        items: list[int]

        @field_validator("items", mode="before")
        @classmethod
        def _emptied(cls, items):
            if not items:
                raise ZeroDivisionError("none")
            items.clear()
            return items

    def f(order: Order): ...

    examples = [{"order": {"items": [1]}}]
    tool = make_tool(f, ToolOptions(examples=examples))
    assert examples == [{"order": {"items": [1]}}]
    assert "[1]" in tool.info.description
    with pytest.raises(DefinitionError, match="ZeroDivisionError: none"):
        make_tool(f, ToolOptions(examples=[{"order": {"items": []}}]))


# -- _meta -----------------------------------------------------------------------------------------


def test_all_keys_of_ours_have_the_prefix_and_are_keys_that_mcp_allows():
    keys = {name: key for name, key in vars(meta_keys).items() if name.isupper() and name[0] != "_"}
    prefix = keys.pop("PREFIX")
    del keys["MAX_RESULT_SIZE"]  # a client's
    assert keys
    assert all(re.fullmatch(re.escape(prefix) + "[a-z]+", key) for key in keys.values())
    assert re.fullmatch(r"[a-z]+(\.[a-z][a-z-]*[a-z])+/", prefix)
    assert prefix.split(".")[1] not in ("mcp", "modelcontextprotocol")


def test_priority_related_and_tags_are_told_when_they_are_said():
    assert info().meta is None
    assert info(priority=0, related=[], tags=[], meta={}).meta is None
    said = info(priority=-2, related=("a", "b", "a"), tags=["x", "y", "x"])
    assert said.meta == {
        meta_keys.TAGS: ["x", "y"],
        meta_keys.PRIORITY: -2,
        meta_keys.RELATED: ["a", "b"],
    }
    assert said.description == "Rain per year."


@pytest.mark.parametrize("option", ["description", "title"])
def test_a_text_that_is_too_long_for_every_list_of_tools_is_refused(option):
    assert f"`{option}` has 100,000 characters" in refusal(**{option: "x" * 100_000})


@pytest.mark.parametrize("priority", [1, 1.5, np.int64(3), np.float32(2), Fraction(1, 2)])
def test_a_priority_is_any_finite_number(priority):
    assert info(priority=priority).meta == {meta_keys.PRIORITY: float(priority)}


@pytest.mark.parametrize("option", ["tags", "related"])
@pytest.mark.parametrize("value", ["sales", [5], [""], [" "], None, 5, [Angry()], Angry()])
def test_tags_and_related_are_lists_of_texts(option, value):
    assert f"`{option}` must be a list of strings" in refusal(**{option: value})


def test_the_authors_own_meta_is_told_as_json():
    meta = {"com.example/team": {"since": date(2012, 1, 2), 1: (1, 2)}, "team": {"names": ()}}
    assert info(meta=meta, tags=["x"]).meta == {
        "com.example/team": {"since": "2012-01-02", "1": [1, 2]},
        "team": {"names": []},
        meta_keys.TAGS: ["x"],
    }


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("com..example/team", "MCP allows only a name"),
        ("com.example/te am", "MCP allows only a name"),
        ("x " * 50_000, "MCP allows only a name"),
        ("io.modelcontextprotocol/team", "MCP reserves"),
        ("dev.mcp/team", "MCP reserves"),
        ("ui", "use the tool's option `ui` (`ui='view.html'`)"),
        ("com.MCP.tools/team", "MCP reserves"),
        (meta_keys.TAGS, "reserved for mcp-notebook"),
        (meta_keys.PREFIX.upper() + "x", "reserved for mcp-notebook"),
    ],
)
def test_a_key_that_mcp_does_not_allow_is_refused(key, said):
    assert said in refusal(meta={key: 1})


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ([], "`meta` must be a dict"),
        ("a", "`meta` must be a dict"),
        ({"com.example/a": object()}, "cannot be written as JSON"),
        ({"com.example/a": math.inf}, "cannot be written as JSON"),
        ({"com.example/a": "x" * 100_000}, "characters of JSON"),
        ({"com.example/a": Angry()}, "`meta`"),
        ({"com.example/a": json.loads("[" * 190 + "]" * 190)}, "flatten it"),
        ({"com.example/a": 10**5000}, "cannot be written as JSON"),
    ],
)
def test_meta_must_be_json(meta, said):
    assert said in refusal(meta=meta)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


# -- tools that follow their names -----------------------------------------------------------------


def test_a_tool_that_follows_its_name_keeps_its_icon_when_the_file_is_gone(tmp_path):
    path = tmp_path / "a.svg"
    path.write_text("<svg/>")
    registry = ToolRegistry(on_change=lambda: None)
    registry.add(make_tool(rain, ToolOptions(icons=[path]), variable="rain"))
    registry.follow({"rain": rain})
    before = registry.get("rain").info.icons
    path.unlink()

    def again(city: str): ...

    again.__name__ = "rain"
    assert registry.follow({"rain": again}) == ()
    assert registry.get("rain").function is again
    assert registry.get("rain").info.icons == before


@pytest.mark.parametrize(("chars", "told"), [(50_000, None), (60_000, 60_000), (10**7, 500_000)])
def test_clients_are_told_of_results_that_are_longer_than_they_take_unasked(chars, told):
    meta = add_result_size(info(), chars).meta or {}
    assert meta.get(meta_keys.MAX_RESULT_SIZE) == told


def test_what_the_author_says_of_it_stays():
    said = {meta_keys.MAX_RESULT_SIZE: 70_000}
    assert add_result_size(info(meta=said), 10**6).meta == said
