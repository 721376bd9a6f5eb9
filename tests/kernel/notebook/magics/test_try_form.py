"""The form of ``%mcp try``: a field for each parameter, a call, a result."""

import sys
from typing import Annotated, Literal

import pytest
from IPython.core.error import UsageError
from pydantic import Field, SecretStr

from mcp_notebook.kernel.notebook.magics.try_form import build_form
from mcp_notebook.kernel.tools.declared_tool import make_tool


def report(  # noqa: PLR0913, PLR0917 - a form of every kind of field
    city: str,
    year: Annotated[int, Field(ge=2000)],
    kind: Literal["rain", "snow"],
    key: SecretStr,
    days: list[int],
    note: str | None = None,
    color: str = "C0",
    level: Literal[1, 2] | None = None,
    draft: bool = True,
): ...


@pytest.fixture
def form():
    calls = []
    *rows, button, _output = build_form(make_tool(report), calls.append).children
    fields = {row.children[0].description: row.children[0] for row in rows}

    def press():
        button.click()
        return calls.pop()

    return fields, press


def test_a_form_has_a_field_for_each_parameter_that_shows_its_default(form):
    fields, _ = form
    kinds = {name: type(field).__name__ for name, field in fields.items()}
    assert list(kinds) == ["city", "year", "kind", "key", "days", "note", "color", "level", "draft"]
    assert kinds["city"] == kinds["year"] == kinds["days"] == kinds["note"] == "Text"
    assert kinds["kind"] == kinds["draft"] == "Dropdown"
    assert kinds["key"] == "Password"
    assert fields["color"].value == "C0"
    assert fields["draft"].value is True
    assert fields["note"].value == fields["city"].value == ""


def test_a_call_gets_what_was_entered_and_leaves_out_what_was_not(form):
    fields, press = form
    assert press() == {"city": "", "kind": "rain", "color": "C0", "draft": True}
    fields["city"].value = "2015"  # text, although it looks like a number
    fields["year"].value = "2015"
    fields["days"].value = "[1, 2]"
    fields["note"].value = "7"
    fields["key"].value = "hunter2"
    fields["kind"].value = "snow"
    assert press() == {
        "city": "2015",
        "year": 2015,
        "days": [1, 2],
        "note": "7",
        "key": "hunter2",
        "kind": "snow",
        "color": "C0",
        "draft": True,
    }


def test_invalid_json_is_sent_as_text_for_the_tool_to_refuse(form):
    fields, press = form
    fields["year"].value = "soon"
    assert press()["year"] == "soon"


def test_without_ipywidgets_the_message_says_what_else_there_is(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(UsageError, match="%mcp call report name=value"):
        build_form(make_tool(report), print)


@pytest.mark.smoke
def test_the_button_calls_the_tool_in_the_kernel_and_shows_what_a_client_would_get(rain):
    rain.ok("%mcp try rain")
    press = (
        "from ipywidgets import Button, Widget\n"
        "widgets = list(__import__('ipywidgets').widgets.widget._instances.values())\n"
        "[w for w in widgets if isinstance(w, Button)][-1].click()"
    )
    assert "Seattle 2012" in rain.ok(press).stdout
    assert "rain" in rain.ok("%mcp log").text
    assert "no tool 'x'" in rain.run("%mcp try x").error
    assert "Which tool?" in rain.run("%mcp try").error
