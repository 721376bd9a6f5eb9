"""What a card and the table of ``%mcp list`` say of tools, as HTML and as plain text."""

import enum
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import pytest
from bs4 import BeautifulSoup
from msgspec import structs
from pydantic import Field, SecretStr, WithJsonSchema

from mcp_notebook import Hidden, Secret
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.notebook.cards.tool_facts import gather_facts
from mcp_notebook.kernel.notebook.cards.tool_state import LIVE, ToolState, describe_moved_tool
from mcp_notebook.kernel.notebook.cards.tool_view import (
    MAX_UNFOLDED,
    build_card,
    build_table,
)
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions


def rain(city: str, limit: Annotated[int, Hidden] = 10):
    """Rain per year."""


STAMP = "Made on 2026-11-22 11:53 in kernel 99."


def build(tools, names, state=LIVE):
    facts = [gather_facts(tool, lambda name: name in names) for tool in tools]
    states = {tool.name: state for tool in tools}
    return build_card(facts, states, STAMP)


def shown(names=(), **options):
    bundle = build([make_tool(rain, ToolOptions(**options))], names)
    assert set(bundle) == {"text/html", "text/plain"}
    return bundle.values()


def test_a_card_without_options_says_nothing_of_them():
    html, text = shown()
    card, _, end = text.rpartition("\n\n")
    assert card == (
        "MCP tool rain(city: str)\n    [live]\n    Rain per year.\n    - city: text, required"
    )
    assert end == (
        "Try it            %mcp try rain  (A form, in a cell.)\n"
        "Connect a client  mcp-notebook install claude-code  (In a terminal, once.)\n"
        'Remove it         from mcp_notebook import registry; registry.remove("rain")  '
        f"(Deleting the cell does not.)\n{STAMP}"
    )
    assert "<img" not in html
    assert "limit" not in html


def test_a_card_says_which_parameters_are_required_and_what_the_others_are_without():
    def snow(city: str, year: int = 2012, *, days: list[int] | None = None): ...

    html, text = build([make_tool(snow)], ()).values()
    assert "- city: text, required" in text
    assert "- year: whole number, default 2012" in text
    assert "- days: list of whole numbers or None, default None" in text
    page = BeautifulSoup(html, "html.parser")
    rows = [[cell.text for cell in row("td")] for row in page.table("tr")]
    assert rows[0] == ["city", "text", "required", ""]
    assert rows[1] == ["year", "whole number", "default 2012", ""]


def test_a_tool_without_parameters_says_so():
    html, _ = build([make_tool(lambda: 1, ToolOptions(name="one"))], ()).values()
    assert "No parameters." in html


def test_a_card_of_a_tool_that_is_not_live_says_why_and_neither_how_to_call_nor_to_remove_it():
    state = describe_moved_tool("rain")
    for text in build([make_tool(rain)], (), state).values():
        assert "replaced" in text
        assert "Another cell has declared" in text
        assert "Rain per year." in text
        assert "required" not in text
        assert "registry.remove" not in text
        assert STAMP in text


def test_several_tools_are_on_one_card_and_folded_if_they_are_many():
    tools = [make_tool(rain, ToolOptions(name=f"rain_{n}")) for n in range(MAX_UNFOLDED + 1)]
    few, _ = build(tools[:MAX_UNFOLDED], ()).values()
    many, text = build(tools, ()).values()
    page = BeautifulSoup(many, "html.parser")
    folded = [fold.summary.text for fold in page("details")[:-1]]
    assert folded == [f"rain_{n} \N{BLACK CIRCLE} live Rain per year." for n in range(len(folded))]
    assert len(folded) == len(tools)
    assert page.b.text == "6 MCP tools"
    assert few.count("<details") == 1  # what can be done with them
    assert text.count("[live]") == len(tools)
    names = ", ".join(f'"{tool.name}"' for tool in tools)
    for card in (page.text, text):
        assert f"registry.remove({names})" in card


def test_a_line_to_copy_can_be_selected_where_no_script_adds_the_button():
    html, _ = shown()
    page = BeautifulSoup(html, "html.parser")
    lines = [script.previous_sibling for script in page("script")]
    assert [(line.name, line.text) for line in lines] == [
        ("code", "%mcp try rain"),
        ("code", "mcp-notebook install claude-code"),
        ("code", 'from mcp_notebook import registry; registry.remove("rain")'),
    ]
    assert all("user-select:all" in line["style"] for line in lines)
    assert not page("button")


@pytest.mark.parametrize(
    ("options", "detail"),
    [
        ({"run": "thread"}, "runs in a thread"),
        ({"run": "fork", "read_only": True}, "runs in a copy of the kernel"),
        ({"executor": ThreadPoolExecutor(1)}, "runs in ThreadPoolExecutor"),
        ({"task": True}, "each call is a task"),
        ({"task": "only"}, "each call is a task, for clients that support them"),
        ({"keep": True}, "runs on without its client"),
        ({"stateful": True}, "one kernel per client"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_card_shows_how_calls_run_unless_that_is_as_usual(options, detail):
    for card, usual in zip(shown(**options), shown(), strict=True):
        assert detail in card
        assert detail not in usual


@pytest.mark.parametrize("kind", [0, 1])
def test_a_card_shows_what_the_author_said(kind):
    text = list(
        shown(
            title="Rain fall",
            read_only=True,
            open_world=False,
            tags=["weather", "<b>"],
            priority=2,
            examples=[{"city": "Oslo"}],
        )
    )[kind]
    for said in ("Rain fall", "read-only", "closed world", "priority 2", "Examples of arguments"):
        assert said in text
    assert ("tags: weather, &lt;b&gt;", "tags: weather, <b>")[kind] in text


def test_a_default_that_is_a_secret_is_on_no_card_and_in_no_list():
    def log_in(
        key: SecretStr = "hunter2",
        pin: Annotated[Secret[int], Field(alias="PIN")] = 4711,
        token: SecretStr | None = None,
        user: str = "ann",
    ): ...

    options = ToolOptions(
        input_schema={
            "type": "object",
            "properties": {"key": {"format": "password", "default": "hunter2"}},
        }
    )
    tools = [make_tool(log_in), make_tool(lambda **key: key, options, variable="by_hand")]
    for text in (*build(tools, ()).values(), *build_table(tools).values()):
        assert "hunter2" not in text
        assert "4711" not in text
    _, text = build(tools, ()).values()
    assert "log_in(key: SecretStr = ..., pin: Secret[int] = ..., " in text
    assert "by_hand(key=...)" in text
    assert "- key: secret text, optional" in text
    assert "- user: text, default 'ann'" in text


@pytest.mark.parametrize("kind", [0, 1])
def test_a_card_shows_that_a_person_is_asked(kind):
    assert "asks before each call" in list(shown(confirm=True))[kind]
    assert "asks before" not in list(shown())[kind]


def double(n: int = 2) -> list[int]:
    """Twice."""


def test_a_card_shows_defaults_and_what_the_structured_result_is():
    _, text = build([make_tool(double)], ()).values()
    assert "    [live \N{MIDDLE DOT} structured result: list of whole numbers]" in text
    assert "    - n: whole number, default 2" in text


def test_a_card_shows_icons_and_their_addresses_stay_within_their_quotes():
    html, _ = shown(icons=["https://example.com/a.png?'><script>", "data:image/svg+xml,<svg/>"])
    assert html.count("<img ") == 2
    assert html.count("<script>") == 3  # the buttons'
    assert "<svg/>" not in html


def test_a_related_tool_that_does_not_exist_is_a_warning_on_the_card():
    for text in shown(["snow"], related=["snow", "hail", "sales_top"]):
        assert "see also: snow, hail, sales_top" in text
        assert text.count("this notebook has no tool of that name yet") == 2
        assert "`related` names `snow`" not in text


def test_an_array_is_shown_as_its_author_wrote_it():
    def mean(x: npt.NDArray[np.float64], y: npt.NDArray[np.int8] | None = None):
        """Mean."""

    _, text = build([make_tool(mean)], ()).values()
    assert "mean(x: NDArray[float64], y: NDArray[int8] | None = None)" in text


EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'>`</code><b>`&lt;i&gt;\u202e"


class Odd:
    def __repr__(self):
        return EVIL


class Evil(enum.Enum):
    EVIL = EVIL


Result = Annotated[dict, WithJsonSchema({"type": "object", "properties": {EVIL: {}}})]


def evil(
    a: Annotated[str, Field(description=EVIL, alias=EVIL, pattern="<b>")] = EVIL,
    b: Literal[EVIL] = EVIL,
    c: Evil = Evil.EVIL,
    d: Annotated[object, WithJsonSchema({"type": "string", "const": EVIL})] = Odd(),
    e: "dict[Literal['<b>'], int]" = {"<b>": 1},  # noqa: B006
) -> Result: ...


evil.__doc__ = f"""{EVIL}

- {EVIL}

Args:
    {EVIL}: {EVIL}
    nobody: {EVIL}
"""


def test_whatever_an_author_or_a_library_says_is_text_on_a_card():
    options = ToolOptions(
        title=EVIL,
        tags=[EVIL],
        related=["no-such-tool"],
        examples=[{EVIL: EVIL}],
        icons=["https://x.example/'onerror=alert(1)"],
        output_schema={"type": "object", "properties": {EVIL: {"type": "string"}}},
    )
    tool = make_tool(evil, options)
    tool = replace(tool, notes=(f"`{EVIL}` {EVIL}",))
    harmless = shown()  # what a card's own script is
    script = BeautifulSoup(next(iter(harmless)), "html.parser").script
    many = [replace(tool, info=structs.replace(tool.info, name=f"e{n}")) for n in range(6)]
    state = ToolState("gone", f"`{EVIL}` {EVIL}")
    cards = [build([tool], [EVIL]), build(many, ()), build([tool], (), state)]
    for bundle in (*cards, build_table([tool])):
        page = BeautifulSoup(bundle["text/html"], "html.parser")
        tags = {tag.name for tag in page.find_all()}
        assert tags <= {
            *("div", "b", "code", "table", "tbody", "tr", "td", "br", "span", "img"),
            *("details", "summary", "script"),
        }
        attributes = {(tag.name, name) for tag in page.find_all() for name in tag.attrs}
        assert {name for _, name in attributes} <= {"style", "src", "alt"}
        assert {item.string for item in page("script")} <= {script.string}
        assert {img["src"] for img in page.find_all("img")} <= {options.icons[0]}
        assert "\u202e" not in bundle["text/html"] + bundle["text/plain"]


@pytest.mark.parametrize("address", ["javascript:alert(1)", "vbscript:x", " javascript:alert(1)"])
def test_an_icon_runs_no_script(address):
    with pytest.raises(DefinitionError):
        make_tool(rain, ToolOptions(icons=[address]))


def test_a_table_has_a_line_for_each_tool():
    html, text = build_table([make_tool(rain), make_tool(double)]).values()
    assert text == "rain(city: str)     Rain per year.\ndouble(n: int = 2)  Twice."
    assert html.count("<tr>") == 2
