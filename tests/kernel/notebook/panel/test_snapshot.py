"""What the snapshot and the status card look like: HTML, and the same in plain text."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from mcp_notebook.kernel.notebook.panel.snapshot import (
    MAX_CALLED,
    MAX_OPEN,
    MAX_TOOLS,
    build_snapshot,
)
from mcp_notebook.kernel.notebook.panel.status_card import MAX_NAMES, StatusFacts, build_status
from mcp_notebook.kernel.notebook.panel.thumbnails import Thumbnail
from mcp_notebook.wire import messages

NOW = 1_790_000_000.0


def make_state(**changes):
    fields = {
        "name": "weather",
        "kernel": "k7",
        "addresses": ["`http://127.0.0.1:8791/mcp`", "`/base/mcp` on this Jupyter server"],
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


def read(state, thumbnails=None):
    """Return a snapshot as a reader of HTML and one of plain text see it, and the HTML."""
    bundle = build_snapshot(state, thumbnails or {}, NOW)
    assert set(bundle) == {"text/html", "text/plain"}
    soup = BeautifulSoup(bundle["text/html"], "html.parser")
    return soup.get_text(" "), bundle["text/plain"], soup


@pytest.mark.parametrize("kind", [0, 1])
def test_a_snapshot_shows_its_time_clients_tools_and_calls(kind):
    text = " ".join(read(make_state())[kind].split())
    for words in (
        "weather",
        "as of 2026-09-2",
        "http://127.0.0.1:8791/mcp",
        "on this Jupyter server",
        "chat, editor 1.2 (2 times)",
        "weather_top (here top)",
        "was deleted",
        "uestion 3: may drop run? 9 min left to answer with",
        "running since",
        "%mcp stop 17",
        "plot_rain(year=2015)",
        "done in 400 ms",
        "and 3 calls more",
        "no. received call client outcome result",
        "tool calls errors description",
        "no. call client state to stop it",
    ):
        assert words in text


@pytest.mark.parametrize("kind", [0, 1])
def test_an_empty_snapshot_says_what_comes_next(kind):
    text = read(messages.NotebookState(name="weather"))[kind]
    assert "none connected" in text
    assert "%mcp serve" in text
    assert "%%mcp_tool" in text
    assert "Running" not in text


def test_of_many_tools_those_are_shown_that_were_called():
    tools = [make_tool(name=f"tool_{number}", calls=number % 20 == 7) for number in range(60)]
    for text in read(make_state(tools=tools))[:2]:
        assert [f"tool_{number}" in text for number in (7, 27, 47, 8)] == [True, True, True, False]
        assert "and 57 tools more, never called" in text
    tools = [make_tool(name=f"tool_{number}", calls=number) for number in range(60)]
    for text in read(make_state(tools=tools))[:2]:
        assert "tool_59" in text
        assert f"and {60 - MAX_CALLED} tools more, others" in text
    for text in read(make_state(tools=tools[:MAX_TOOLS]))[:2]:
        assert "tool_0" in text
        assert "tools more" not in text


def test_open_calls_have_a_limit_and_one_that_stops_has_no_line_to_stop_it():
    calls = [make_open(number, is_stopping=number == 0) for number in range(MAX_OPEN + 1)]
    for text in read(make_state(open_calls=calls))[:2]:
        assert "and 1 call more" in text
        assert "%mcp stop 0" not in text
        assert text.count("%mcp stop ") == MAX_OPEN - 1


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        ({"state": "failed", "is_error": True}, "\N{BALLOT X} failed in 400 ms"),
        ({"state": "stopped"}, "\N{BLACK SQUARE} stopped"),
        ({"state": "done, cached"}, "\N{CHECK MARK} done, cached"),
    ],
)
def test_an_outcome_has_a_mark(call, outcome):
    _, _, soup = read(make_state(ended_calls=[make_ended(16, **call)]))
    assert outcome in soup.get_text()


def test_pictures_are_shown_in_small_if_they_are_pictures():
    thumbnails = {16: Thumbnail("1 picture", b"\x89PNG...", "image/png")}
    _, _, soup = read(make_state(), thumbnails)
    assert soup.img["src"].startswith("data:image/png;base64,")
    thumbnails = {16: Thumbnail("1 picture", b"<svg>", "image/svg+xml")}
    assert read(make_state(), thumbnails)[2].img is None


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
        recording=[EVIL],
        names=[EVIL],
        files=[EVIL],
        home=Path(EVIL),
        is_remote=False,
    )
    for bundle in (build_snapshot(state, {}, NOW), build_status(state, facts, NOW)):
        soup = BeautifulSoup(bundle["text/html"], "html.parser")
        assert not soup.find_all(["img", "a", "iframe", "button"])
        assert not [name for tag in soup.find_all() for name in tag.attrs if name != "style"]
        assert not [script for script in soup("script") if EVIL in script.text]


def test_control_characters_do_nothing():
    for text in build_snapshot(make_state(name="a\x1b[2Jb\u202ec"), {}, NOW).values():
        assert "\x1b" not in text
        assert "\u202e" not in text


def show_status(**changes):
    facts = {"counts": (), "recording": (), "names": (), "files": (), "home": Path("/h")}
    facts = StatusFacts(**facts | {"is_remote": changes.pop("is_remote", False)})
    bundle = build_status(make_state(**changes), facts, NOW)
    return bundle["text/plain"], BeautifulSoup(bundle["text/html"], "html.parser")


def test_the_status_has_the_address_with_a_copy_button_and_the_home_folder():
    text, soup = show_status()
    assert "Address    http://127.0.0.1:8791/mcp\n" in text
    assert "           /base/mcp on this Jupyter server\n" in text
    assert text.endswith("Home       `/h`")
    copied = [script.previous_sibling.text for script in soup("script") if "Copy" in script.text]
    assert copied == [
        "http://127.0.0.1:8791/mcp",
        "/base/mcp",
        "mcp-notebook install claude-code",
    ]


def test_the_status_says_not_served_only_if_there_is_no_address():
    assert "not served" not in show_status()[0]
    assert "not served over HTTP" in show_status(addresses=[])[0]


def test_away_from_its_clients_the_status_names_no_command_of_this_machine():
    text, _ = show_status(is_remote=True)
    assert "install" not in text
    assert "8791/mcp (only on this server)" in text


def test_the_status_names_some_of_many_tools():
    text, _ = show_status(tools=[make_tool(name=f"tool_{number}") for number in range(60)])
    assert f"and {60 - MAX_NAMES} more: `%mcp list` shows them" in text
    assert "switched off" in show_status(tools=[make_tool(name="a", on=False)])[0]
