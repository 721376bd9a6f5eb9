"""What the status card looks like: HTML, and the same in plain text."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from mcp_notebook.kernel.notebook.panel.status_card import (
    MAX_ENDED,
    StatusFacts,
    build_status,
)
from mcp_notebook.wire import messages

NOW = 1_790_000_000.0


def make_state(**changes):
    fields = {
        "name": "weather",
        "kernel": "k7",
        "addresses": ["`http://127.0.0.1:8791/mcp`", "`/base/mcp-notebook` on this Jupyter server"],
        "problems": ["old: `old` was deleted."],
        "clients": [
            messages.SeenClient(name="chat", since=NOW),
            messages.SeenClient(name="editor 1.2", number=2, since=NOW),
        ],
        "tools": [
            make_tool(name="plot_rain", calls=12, errors=1),
            make_tool(name="top", listed_as="weather_top"),
        ],
        "open_calls": [make_open(17)],
        "questions": [
            messages.OpenQuestion(
                number=3, tool="drop", text="", asked=NOW, ends=NOW + 540, session="hour"
            )
        ],
        "ended_calls": [make_ended(16)],
        "number_of_calls": 4,
    }
    return messages.NotebookState(**fields | changes)


def make_tool(**fields):
    return messages.SeenTool(**{"description": "Plot the rain."} | fields)


def make_open(number, **fields):
    call = {"tool": "forecast", "client": "chat", "call": "forecast(days=3)", "came": NOW - 60}
    return messages.OpenCall(number=number, **call | {"began": NOW - 59} | fields)


def make_ended(number, **fields):
    call = {"tool": "plot_rain", "client": "editor 1.2", "call": "plot_rain(year=2015)"}
    end = {"came": NOW, "state": "done", "seconds": 0.4, "result": "1 picture", "has_picture": True}
    return messages.EndedCall(number=number, **call | end | fields)


def show_status(**changes):
    facts = {"counts": (), "names": (), "files": (), "home": Path("/h")}
    facts = StatusFacts(**facts | {"is_remote": changes.pop("is_remote", False)})
    bundle = build_status(make_state(**changes), facts, NOW)
    return bundle["text/plain"], BeautifulSoup(bundle["text/html"], "html.parser")


@pytest.mark.parametrize("kind", [0, 1])
def test_the_status_shows_its_time_clients_tools_and_calls(kind):
    shown = show_status()[kind]
    text = " ".join((shown if kind == 0 else shown.get_text(" ")).split())
    for words in (
        "weather",
        "as of 2026-09-2",
        "http://127.0.0.1:8791/mcp",
        "on this Jupyter server",
        "chat, editor 1.2 (2 times)",
        "plot_rain, top",
        "was deleted",
        "uestion 3: may drop run? 9 min left to answer with",
        "running since",
        "%mcp stop 17",
        "16 plot_rain(year=2015), ",
        "editor 1.2: done in 400 ms: 1 picture",
        "and 3 calls more",
    ):
        assert words in text


def test_the_status_of_a_notebook_without_anything_says_what_comes_next():
    text, _ = show_status(
        addresses=[], clients=[], tools=[], open_calls=[], ended_calls=[], number_of_calls=0
    )
    assert "none connected" in text
    assert "%mcp serve" in text
    assert "%%mcp_tool" in text
    assert "Running" not in text
    assert "Last calls" not in text


def test_a_few_of_the_last_calls_are_shown_and_the_others_counted():
    calls = [make_ended(number) for number in range(20, 0, -1)]
    text, _ = show_status(ended_calls=calls, number_of_calls=500)
    assert text.count("plot_rain(year=2015)") == MAX_ENDED
    assert f"and {500 - MAX_ENDED} calls more: `%mcp log` shows them" in text


def test_a_call_that_stops_has_no_line_to_stop_it():
    assert "%mcp stop 1" not in show_status(open_calls=[make_open(1, is_stopping=True)])[0]


EVIL = "<img src=x onerror='alert(1)'>\"&"


def test_every_text_is_escaped_and_no_name_can_become_code():
    state = messages.NotebookState(
        name=EVIL,
        addresses=[f"`/{EVIL}` {EVIL}", EVIL],
        problems=[EVIL],
        clients=[messages.SeenClient(name=EVIL, since=NOW)],
        tools=[make_tool(name=EVIL, listed_as=EVIL, description=EVIL)],
        open_calls=[make_open(1, call=EVIL, client=EVIL, waits_for=EVIL, message=EVIL, task=EVIL)],
        questions=[
            messages.OpenQuestion(number=1, tool=EVIL, text="", asked=0, ends=1, session="hour")
        ],
        ended_calls=[make_ended(2, call=EVIL, client=EVIL, state=EVIL, result=EVIL)],
    )
    facts = StatusFacts(
        counts=[EVIL],
        names=[EVIL],
        files=[EVIL],
        home=Path(EVIL),
        is_remote=False,
    )
    bundle = build_status(state, facts, NOW)
    soup = BeautifulSoup(bundle["text/html"], "html.parser")
    assert not soup.find_all(["img", "a", "iframe", "button"])
    assert not [name for tag in soup.find_all() for name in tag.attrs if name != "style"]
    assert not [script for script in soup("script") if EVIL in script.text]


def test_the_status_has_the_address_with_a_copy_button_and_the_home_folder():
    text, soup = show_status()
    assert "Address     http://127.0.0.1:8791/mcp\n" in text
    assert "            /base/mcp-notebook on this Jupyter server\n" in text
    assert text.endswith("Home        `/h`")
    copied = [script.previous_sibling.text for script in soup("script") if "Copy" in script.text]
    assert copied == [
        "http://127.0.0.1:8791/mcp",
        "/base/mcp-notebook",
        "mcp-notebook install claude-code",
    ]


def test_away_from_its_clients_the_status_names_no_command_of_this_machine():
    text, _ = show_status(is_remote=True)
    assert "install" not in text
    assert "8791/mcp (only on this server)" in text
