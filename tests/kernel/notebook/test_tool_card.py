"""The card under a cell of tools: HTML, and the same in plain text."""

import enum
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import pytest
from bs4 import BeautifulSoup
from pydantic import Field, SecretStr, WithJsonSchema

from mcp_notebook import Hidden, Secret
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.notebook.tool_card import build_card, build_table
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.wording import make_printable


def rain(city: str, limit: Annotated[int, Hidden] = 10):
    """Rain per year."""


def shown(names=(), **options):
    bundle = build_card([make_tool(rain, ToolOptions(**options))], names)
    assert set(bundle) == {"text/html", "text/plain"}
    return bundle.values()


def test_a_card_without_options_says_nothing_of_them():
    html, text = shown()
    card, _, removal = text.rpartition("\n\n")
    assert card == "MCP tool rain(city: str)\n    Rain per year.\n    - city: string"
    assert removal == "`%mcp remove rain` removes it; deleting the cell does not."
    assert "<img" not in html
    assert html.count("opacity") == 1  # of the last line
    assert "limit" not in html


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
    for said in ("Rain fall", "read-only, closed world", "priority 2", "Examples of arguments"):
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
    for text in (*build_card(tools, ()).values(), *build_table(tools).values()):
        assert "hunter2" not in text
        assert "4711" not in text
    _, text = build_card(tools, ()).values()
    assert "log_in(key: SecretStr = ..., pin: Secret[int] = ..., " in text
    assert "by_hand(key=...)" in text
    assert "- key: secret text, optional" in text
    assert "- user: string, default 'ann'" in text


@pytest.mark.parametrize("kind", [0, 1])
def test_a_card_shows_that_a_person_is_asked(kind):
    assert "asks before each call" in list(shown(confirm=True))[kind]
    assert "asks before" not in list(shown())[kind]


def double(n: int = 2) -> list[int]:
    """Twice."""


def test_a_card_shows_defaults_and_what_the_structured_result_is():
    _, text = build_card([make_tool(double)], ()).values()
    assert "    [structured result: array of integer]" in text
    assert "    - n: integer, default 2" in text


def test_a_table_has_a_line_for_each_tool():
    html, text = build_table([make_tool(rain), make_tool(double)]).values()
    assert text == "rain(city: str)     Rain per year.\ndouble(n: int = 2)  Twice."
    assert html.count("<tr>") == 2


def test_a_card_shows_icons_and_their_addresses_stay_within_their_quotes():
    html, _ = shown(icons=["https://example.com/a.png?'><script>", "data:image/svg+xml,<svg/>"])
    assert html.count("<img ") == 2
    assert "<script>" not in html
    assert "<svg/>" not in html


def test_a_related_tool_that_does_not_exist_is_a_warning_on_the_card():
    for text in shown(["snow"], related=["snow", "hail", "sales.top"]):
        assert "see also: snow, hail, sales.top" in text
        assert text.count("this notebook has no tool of that name yet") == 2
        assert "`related` names `snow`" not in text


def test_an_array_is_shown_as_its_author_wrote_it():
    def mean(x: npt.NDArray[np.float64], y: npt.NDArray[np.int8] | None = None):
        """Mean."""

    _, text = build_card([make_tool(mean)], ()).values()
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
    for bundle in (build_card([tool], [EVIL]), build_table([tool])):
        page = BeautifulSoup(bundle["text/html"], "html.parser")
        tags = {tag.name for tag in page.find_all()}
        assert tags <= {"div", "b", "code", "table", "tbody", "tr", "td", "br", "span", "img"}
        attributes = {(tag.name, name) for tag in page.find_all() for name in tag.attrs}
        assert {name for _, name in attributes} <= {"style", "src", "alt"}
        assert [b.text for b in page.find_all("b")] in ([], ["MCP tool", make_printable(EVIL)])
        assert [img["src"] for img in page.find_all("img")] in ([], [options.icons[0]])
        assert "\u202e" not in bundle["text/html"] + bundle["text/plain"]


@pytest.mark.parametrize("address", ["javascript:alert(1)", "vbscript:x", " javascript:alert(1)"])
def test_an_icon_is_no_script(address):
    with pytest.raises(DefinitionError):
        make_tool(rain, ToolOptions(icons=[address]))
