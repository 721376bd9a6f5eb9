"""The form of ``%mcp try`` in JupyterLab: pickers, the parts of objects, problems, a table."""

import pytest
from looks import look_at
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
BOOK = """%%mcp_tool
import datetime as dt
from dataclasses import dataclass
from typing import Annotated, TypedDict
import pandas as pd
from pydantic import BaseModel, Field
@dataclass
class Address:
    street: str
    code: int = 1000
class Person(BaseModel):
    name: str
    born: dt.date
    home: Address | None = None
class Room(TypedDict):
    beds: int
def book(
    arrival: dt.date, guest: Person, room: Room, late: dt.time | None = None,
    nights: Annotated[int, Field(ge=1)] = 1,
) -> pd.DataFrame:
    'Book a room.'
    return pd.DataFrame({"guest": [guest.name], "born": [guest.born], "nights": [nights]})
"""


def test_a_form_is_filled_in_corrected_and_sent(open_notebook):
    notebook = open_notebook("quickstart.ipynb")
    notebook.run("%load_ext mcp_notebook")
    notebook.run(BOOK)
    form = notebook.run("%mcp try book")
    form.get_by_label("beds").fill("many")
    form.get_by_label("nights").fill("0")
    button = form.get_by_role("button", name="Call book")
    button.click()
    expect(form.get_by_role("alert")).to_have_count(4)
    expect(form).to_contain_text("The tool was not called.")
    look_at("form_problems", notebook, form)

    for label, text in {
        "arrival": "2026-12-24",
        "name": "Ada",
        "born": "1815-12-10",
        "beds": "2",
        "nights": "3",
    }.items():
        form.get_by_label(label, exact=True).fill(text)
    button.click()
    expect(form.get_by_role("table")).to_contain_text("1815-12-10")
    expect(form.get_by_role("alert")).to_have_count(0)
    look_at("form_sent", notebook, form)
    notebook.page.set_viewport_size({"width": 850, "height": 900})
    look_at("form_narrow", notebook, form)
