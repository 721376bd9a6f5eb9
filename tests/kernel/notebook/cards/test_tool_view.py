"""What a card and the table of ``%mcp list`` say of tools, as HTML and as plain text."""

import enum
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Literal

import pytest
from bs4 import BeautifulSoup
from msgspec import structs
from pydantic import Field, SecretStr, WithJsonSchema

from mcp_notebook import Hidden, Secret
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.notebook.cards.tool_view import (
    MAX_UNFOLDED,
    build_card,
    build_table,
)
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import PromptOptions, ToolOptions


def rain(city: str, limit: Annotated[int, Hidden] = 10):
    """Rain per year."""


def build(tools):
    bundle = build_card(tools)
    assert set(bundle) == {"text/html", "text/plain"}
    return bundle


def shown(**options):
    return build([make_tool(rain, ToolOptions(**options))]).values()


def test_a_card_says_which_parameters_are_required_and_what_the_others_are_without():
    def snow(city: str, year: int = 2012, *, days: list[int] | None = None): ...

    html, text = build([make_tool(snow)]).values()
    assert "snow(city: str, year: int = 2012, *, days: list[int] | None = None)" in text
    page = BeautifulSoup(html, "html.parser")
    assert [item.text for item in page("li")] == [
        "city text, required",
        "year whole number, default 2012",
        "days list of whole numbers or None, default None",
    ]


def test_several_tools_are_on_one_card_and_folded_if_they_are_many():
    tools = [make_tool(rain, ToolOptions(name=f"rain_{n}")) for n in range(MAX_UNFOLDED + 1)]
    few, _ = build(tools[:MAX_UNFOLDED]).values()
    many, text = build(tools).values()
    page = BeautifulSoup(many, "html.parser")
    folded = [fold.summary.text for fold in page("details")]
    assert folded == [f"rain_{n} Rain per year." for n in range(len(tools))]
    assert page.b.text == "6 MCP tools"
    assert many.count("Rain per year.") == len(tools)
    assert "<details" not in few
    assert text.count("MCP tool rain_") == len(tools)


@pytest.mark.parametrize(
    ("options", "detail"),
    [
        ({"run": "thread"}, "runs in a thread"),
        ({"run": "fork", "read_only": True}, "runs in a copy of the kernel"),
        ({"executor": ThreadPoolExecutor(1)}, "runs in ThreadPoolExecutor"),
        ({"task": True}, "each call is a task"),
        ({"task": "only"}, "each call is a task, for clients that support them"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_card_shows_how_calls_run(options, detail):
    for card, usual in zip(shown(**options), shown(), strict=True):
        assert detail in card
        assert detail not in usual


def test_a_card_alone_says_that_calls_take_turns_and_what_threads_would_break():
    async def snow(): ...

    tool = make_tool(rain)
    html, text = build([tool]).values()
    page = BeautifulSoup(html, "html.parser")
    assert "one call at a time; --run thread lifts that for code that sets no globals" in page.text
    assert "--run" not in text
    assert "--run" not in str(tool.info)
    for other in (make_tool(snow), make_tool(rain, PromptOptions())):  # these take no turns
        assert "one call at a time" not in str(build([other]))


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
    for said in ("Rain fall", "read-only", "closed world", "priority 2"):
        assert said in text
    assert ("Examples of arguments" in text) is (kind == 0)
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
    for text in (*build(tools).values(), *build_table(tools).values()):
        assert "hunter2" not in text
        assert "4711" not in text
    _, text = build(tools).values()
    assert "log_in(key: SecretStr = ..., pin: Secret[int] = ..., " in text
    assert "by_hand(key=...)" in text
    html, _ = build(tools).values()
    assert "<code>key</code> secret text, optional" in html
    assert "<code>user</code> text, default 'ann'" in html


def double(n: int = 2) -> list[int]:
    """Twice."""


def test_a_card_shows_defaults_and_what_the_structured_result_is():
    html, text = build([make_tool(double, ToolOptions(output_schema=True))]).values()
    assert "    [structured result: list of whole numbers]" in text
    assert "<code>n</code> whole number, default 2" in html


def test_a_card_shows_icons_and_their_addresses_stay_within_their_quotes():
    html, _ = shown(icons=["https://example.com/a.png?'><script>", "data:image/svg+xml,<svg/>"])
    assert html.count("<img ") == 2
    assert "<script>" not in html
    assert "<svg/>" not in html


EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'>`</code><b>`&lt;i&gt;\u202e"


class Odd:
    def __repr__(self):
        return EVIL


class Evil(enum.Enum):
    EVIL = EVIL


Result = Annotated[dict, WithJsonSchema({"type": "object", "properties": {EVIL: {}}})]


def evil(
    a: Annotated[str, Field(description=EVIL, pattern="<b>")] = EVIL,
    b: Literal[EVIL] = EVIL,
    c: Evil = Evil.EVIL,
    d: Annotated[object, WithJsonSchema({"type": "string", "const": EVIL})] = Odd(),
    e: "dict[Literal['<b>'], int]" = {"<b>": 1},  # noqa: B006
) -> Result: ...


def named(a: Annotated[str, Field(alias=EVIL)]): ...


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
        examples=[{"a": EVIL}],
        icons=["https://x.example/'onerror=alert(1)"],
        output_schema={"type": "object", "properties": {EVIL: {"type": "string"}}},
    )
    tool = make_tool(evil, options)
    tool = structs.replace(tool, notes=(f"`{EVIL}` {EVIL}",))
    many = [structs.replace(tool, info=structs.replace(tool.info, name=f"e{n}")) for n in range(6)]
    prompt = make_tool(named, PromptOptions())
    for bundle in (build([tool, prompt]), build(many), build_table([tool])):
        page = BeautifulSoup(bundle["text/html"], "html.parser")
        tags = {tag.name for tag in page.find_all()}
        assert tags <= {
            *("div", "b", "code", "br", "span", "img", "ul", "li", "hr", "details", "summary"),
            *("table", "thead", "tbody", "tr", "th", "td"),
        }
        attributes = {(tag.name, name) for tag in page.find_all() for name in tag.attrs}
        assert {name for _, name in attributes} <= {"style", "src", "alt"}
        assert {img["src"] for img in page.find_all("img")} <= {options.icons[0]}
        assert "\u202e" not in bundle["text/html"] + bundle["text/plain"]


@pytest.mark.parametrize("address", ["javascript:alert(1)", "vbscript:x", " javascript:alert(1)"])
def test_an_icon_runs_no_script(address):
    with pytest.raises(DefinitionError):
        make_tool(rain, ToolOptions(icons=[address]))


def test_a_table_has_a_line_for_each_tool():
    html, text = build_table([make_tool(rain), make_tool(double)]).values()
    assert text.splitlines() == [
        "tool                description",
        "rain(city: str)     Rain per year.",
        "double(n: int = 2)  Twice.",
    ]
    assert html.count("<tr ") == 3


def test_a_signature_has_no_constraints_within_an_optional_type():
    def look(
        month: Annotated[int, Field(ge=1, le=12)] | None = None,
        year: Annotated[int | None, Field(ge=2012)] = None,
    ):
        """Rain."""

    text = build([make_tool(look)])["text/plain"]
    assert text.startswith("MCP tool look(month: int | None = None, year: int | None = None)\n")
