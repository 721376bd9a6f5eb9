"""The picture of a call's states in CONTRIBUTING.md shows the table that the code has."""

import runpy
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from mcp_notebook.kernel.calls.call import CallState

ROOT = Path(__file__).parent.parent
COMMITTED = (ROOT / "docs" / "images" / "call_states.svg").read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def script():
    """The names that the script defines."""
    return runpy.run_path(str(ROOT / "docs" / "make_pictures.py"))


def test_the_committed_picture_is_the_one_of_the_table(script):
    assert script["call_states"]() == COMMITTED


def test_the_picture_names_every_state():
    texts = [text.text for text in ET.fromstring(COMMITTED).iter(f"{SVG}text")]
    assert sorted(texts) == sorted(CallState)


def test_another_table_gives_another_picture(script, monkeypatch):
    call_states = script["call_states"]
    moves = call_states.__globals__["MOVES"]
    shortcut = {**moves, CallState.QUEUED: moves[CallState.QUEUED] | {CallState.DONE}}
    monkeypatch.setitem(call_states.__globals__, "MOVES", shortcut)
    assert call_states() != COMMITTED


def test_the_contributors_guide_shows_the_picture():
    assert "](docs/images/call_states.svg)" in (ROOT / "CONTRIBUTING.md").read_text(
        encoding="utf-8"
    )
