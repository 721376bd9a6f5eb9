"""The form of ``%mcp try``: a field for each parameter, a call, a result."""

import datetime as dt
import re
import sys
from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict

import pytest
from IPython.core.error import UsageError
from ipywidgets import HTML, Text
from pydantic import AwareDatetime, BaseModel, Field, SecretStr, model_validator

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


def show(function):
    """Return a form's inputs by their labels, a function that presses its button, and problems."""
    calls = []
    form = build_form(make_tool(function), calls.append)
    *_, button, _output = form.children
    inputs = {w.description: w for w in _list_widgets(form) if getattr(w, "description", "")}

    def press():
        button.click()
        return calls.pop() if calls else None

    def list_problems():
        return [re.sub("<.*?>", "", w.value) for w in _list_widgets(form) if "alert" in _html(w)]

    return inputs, press, list_problems


def _html(widget):
    return widget.value if isinstance(widget, HTML) else ""


def _list_widgets(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from _list_widgets(child)


VALID = {"year": "2015", "days": "[1]", "key": "k"}


@pytest.fixture
def form():
    fields, press, _ = show(report)
    del fields["Call report"]
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
    for name, text in VALID.items():
        fields[name].value = text
    sent = {"city": "", "kind": "rain", "color": "C0", "draft": True}
    assert press() == sent | {"year": 2015, "days": [1], "key": "k"}
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


def test_a_date_has_a_picker_and_is_sent_as_its_text():
    def plan(
        day: dt.date,
        at: dt.datetime | None = None,
        end: dt.time = dt.time(17, 30),
        since: dt.date = dt.date(2020, 1, 2),
        zoned: dt.datetime = dt.datetime(2020, 1, 2, tzinfo=dt.UTC),
    ): ...

    fields, press, _ = show(plan)
    kinds = [type(field).__name__ for field in fields.values()]
    assert kinds[:2] == ["DatePicker", "NaiveDatetimePicker"]
    fields["day"].value = dt.date(2024, 12, 31)
    sent = press()
    assert sent.pop("zoned").startswith("2020-01-02T00:00:00")
    assert sent == {"day": "2024-12-31", "end": "17:30:00", "since": "2020-01-02"}
    fields["at"].value = dt.datetime(2024, 12, 31, 23, 59)  # noqa: DTZ001 - local
    assert press()["at"] == "2024-12-31T23:59:00"


def test_a_time_has_a_zone_if_one_is_entered():
    def plan(at: AwareDatetime): ...

    fields, press, list_problems = show(plan)
    fields["at"].value = dt.datetime(2024, 7, 31, 23, 59)  # noqa: DTZ001 - without its zone
    assert press() is None
    assert "zone" in list_problems()[0]
    for zone, offset in {"UTC": "+00:00", "-05:30": "-05:30", "Europe/Berlin": "+02:00"}.items():
        fields["zone"].value = zone
        assert press() == {"at": f"2024-07-31T23:59:00{offset}"}
    for zone in ("Mars", "Europe", "../UTC", "+99:00"):
        fields["zone"].value = zone
        assert press() is None
        assert list_problems()[0].startswith(f"&#x27;{zone}&#x27; is not a time zone; write UTC")


def test_the_zone_of_a_default_is_kept():
    def plan(at: dt.datetime = dt.datetime(2020, 1, 2, tzinfo=dt.UTC)): ...

    fields, press, _ = show(plan)
    assert fields["zone"].value == "+00:00"
    assert press() == {"at": "2020-01-02T00:00:00+00:00"}


def test_json_that_is_nested_too_deeply_is_a_problem_at_its_field():
    fields, press, list_problems = show(report)
    fields["days"].value = "[" * 100_000
    assert press() is None
    assert list_problems() == ["nested too deeply; send less deeply nested values."]


@dataclass
class Place:
    city: str
    code: int = 1


class Person(BaseModel):
    name: str
    born: dt.date | None = None
    home: Place | None = None
    boss: "Person | None" = None


class Size(TypedDict):
    width: int


def test_an_object_has_a_field_for_each_part():
    def book(person: Person, size: Size, second: Place | None = None): ...

    fields, press, list_problems = show(book)
    assert {"name", "born", "city", "code", "width"} <= fields.keys()
    assert press() is None
    assert list_problems() == ["missing"]  # an empty text is a text
    fields["width"].value = "3"
    fields["name"].value = "Ada"
    fields["born"].value = dt.date(1815, 12, 10)
    person = {"name": "Ada", "born": "1815-12-10"}
    assert press() == {"person": person, "size": {"width": 3}}
    assert list_problems() == []


def test_an_optional_object_is_sent_once_a_part_of_it_was_changed():
    def send(to: Place | None = None, back: Place = Place("Oslo", 2)): ...  # noqa: B008

    fields, press, _ = show(send)
    assert press() == {}
    assert (fields["city"].value, fields["code"].value) == ("Oslo", "2")
    fields["code"].value = "5"
    assert press() == {"back": {"city": "Oslo", "code": 5}}


def test_a_type_within_itself_ends_with_a_field_for_json():
    def greet(person: Person): ...

    fields, press, _ = show(greet)
    assert isinstance(fields["boss"], Text)
    fields["name"].value, fields["boss"].value = "Ada", '{"name": "Lovelace"}'
    assert press()


def test_a_problem_is_shown_below_its_field_and_the_tool_is_not_called(form):
    def order(n: Annotated[int, Field(ge=1)], tags: list[int], size: Size): ...

    fields, press, list_problems = show(order)
    fields["n"].value, fields["tags"].value, fields["width"].value = "0", '["<b>"]', "wide"
    assert press() is None
    assert list_problems() == [
        "got 0 (integer); allowed: integer at least 1.",
        "[0]: got &#x27;&lt;b&gt;&#x27; (string); allowed: integer.",
        "got &#x27;wide&#x27; (string); allowed: integer.",
    ]
    fields["n"].value, fields["tags"].value, fields["width"].value = "1", "[1]", "2"
    assert press() == {"n": 1, "tags": [1], "size": {"width": 2}}
    assert list_problems() == []


def test_a_problem_of_a_whole_object_is_shown_below_its_parts():
    class Span(BaseModel):
        low: int
        high: int

        @model_validator(mode="after")
        def _check(self):
            if self.low > self.high:
                raise ValueError("low is above high")
            return self

    def cut(span: Span): ...

    fields, press, list_problems = show(cut)
    fields["low"].value, fields["high"].value = "2", "1"
    assert press() is None
    (problem,) = list_problems()
    assert "low is above high" in problem


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
    assert "declares nothing called 'x'" in rain.run("%mcp try x").error
    assert "Which tool?" in rain.run("%mcp try").error


def test_a_schema_by_hand_with_all_that_json_schema_allows_has_a_form(kernel):
    schema = {
        "any": True,
        "text": {"type": ["string", "null"]},
        "object": {"type": ["object", "null"], "properties": {"part": {"const": 1}}},
        "number": {"allOf": [{"type": "integer"}, {"minimum": 1}]},
        "day": {"type": "string", "format": "date", "default": "soon"},
        "choice": {"enum": [[1], 2]},
    }
    kernel.ok(
        "from mcp_notebook import Tool, registry\n"
        f"schema = {{'type': 'object', 'properties': {schema!r}}}\n"
        "registry.add(Tool(name='odd', input_schema=schema, handler=lambda **a: 1))"
    )
    (shown,) = kernel.ok("%mcp try odd").displays
    assert "application/vnd.jupyter.widget-view+json" in shown
