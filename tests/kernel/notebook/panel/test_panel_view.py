"""What the panel looks like: HTML, and the same in plain text."""

from dataclasses import replace

import pytest
from bs4 import BeautifulSoup

from mcp_notebook.kernel.notebook.panel.panel_state import (
    ClientLine,
    EndedCall,
    OpenCall,
    PanelState,
    Thumbnail,
    ToolLine,
)
from mcp_notebook.kernel.notebook.panel.panel_view import (
    MAX_OPEN,
    MAX_TOOLS,
    ROUTE,
    build_panel,
    format_command,
    render_button,
)

STAMP = "2026-11-22 11:42:08, kernel 4711"
EMPTY = PanelState(notebook="weather", kernel="k7")
OPEN = OpenCall(number=17, tool="forecast", client="chat", doing="running since 11:42:01")
ENDED = EndedCall(
    number=16,
    at="11:42:07",
    text="plot_rain(year=2015)",
    client="editor 1.2",
    outcome="done in 0.4 s",
    thumbnail=Thumbnail("1 picture", b"\x89PNG...", "image/png"),
)
FULL = PanelState(
    notebook="weather",
    kernel="k7",
    addresses=("`http://127.0.0.1:8791/mcp`", "`/base/mcp` on this Jupyter server"),
    clients=(ClientLine(name="chat"), ClientLine(name="editor 1.2", number=2)),
    tools=(
        ToolLine(name="plot_rain", calls=12, errors=1, last="11:42:07, done in 0.4 s"),
        ToolLine(name="top", listed_as="weather_top"),
    ),
    missing=("old: `old` was deleted.",),
    open_calls=(OPEN,),
    ended_calls=(ENDED,),
    more_calls=3,
)


def read(state):
    """Return a panel as a reader of HTML and one of plain text see it, and the HTML."""
    bundle = build_panel(state, STAMP)
    assert set(bundle) == {"text/html", "text/plain"}
    soup = BeautifulSoup(bundle["text/html"], "html.parser")
    return soup.get_text(" "), bundle["text/plain"], soup


@pytest.mark.parametrize("kind", [0, 1])
def test_a_panel_shows_clients_tools_and_calls(kind):
    text = read(FULL)[kind]
    for words in (
        "weather",
        "live",
        STAMP,
        "http://127.0.0.1:8791/mcp",
        "on this Jupyter server",
        "chat, editor 1.2 (2 times)",
        "12 calls, 1 error; last: 11:42:07, done in 0.4 s",
        "weather_top",
        "not called yet",
        "was deleted",
        "running since 11:42:01",
        "mcp-notebook call --stop weather:17",
        "in a terminal, or the notebook's interrupt (■)",
        "plot_rain(year=2015)",
        "done in 0.4 s",
        "and 3 calls more",
    ):
        assert words in text


@pytest.mark.parametrize("kind", [0, 1])
def test_an_empty_panel_says_what_comes_next(kind):
    text = read(EMPTY)[kind]
    assert "none connected" in text
    assert "%mcp serve" in text
    assert "%%mcp_tool" in text
    assert "Running" not in text


def test_every_text_is_escaped_and_no_name_can_become_code():
    evil = "<img src=x onerror='alert(1)'>`\"&"
    call = replace(OPEN, tool=evil, client=evil, doing=evil)
    thumbnail = Thumbnail(evil, b"x", "image/png")
    ended = replace(ENDED, text=evil, client=evil, outcome=evil, at=evil, thumbnail=thumbnail)
    state = PanelState(
        notebook=evil,
        kernel=evil,
        addresses=(evil,),
        clients=(ClientLine(name=evil),),
        tools=(ToolLine(name=evil, listed_as=evil, calls=1, last=evil),),
        missing=(evil,),
        open_calls=(call,),
        ended_calls=(ended, replace(ended, thumbnail=Thumbnail(evil, b"x", evil))),
    )
    _, _, soup = read(state)
    (picture,) = soup.find_all("img")
    assert picture["src"].startswith("data:image/png;base64,")
    handlers = [
        (tag.name, name)
        for tag in soup.find_all()
        for name in tag.attrs
        if name.startswith("on") or name in ("href", "srcdoc")
    ]
    assert handlers == [("button", "onmousedown"), ("button", "onclick")]
    assert not soup.find_all(["script", "style", "iframe", "a"])
    for departed in (state, replace(state, departure=evil)):
        assert "<img src=x" not in build_panel(departed, STAMP)["text/html"]


def test_control_characters_do_nothing():
    for text in build_panel(replace(FULL, notebook="a\x1b[2Jb\u202ec"), STAMP).values():
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_a_call_that_stops_has_no_button():
    _, text, soup = read(replace(FULL, open_calls=(replace(OPEN, is_stopping=True),)))
    assert soup.button is None
    assert "17 forecast (chat): running since 11:42:01; stopping" in text


def test_only_what_the_interrupt_stops_names_the_interrupt():
    for text in read(replace(FULL, open_calls=(replace(OPEN, on_main_thread=False),)))[:2]:
        assert "mcp-notebook call --stop weather:17" in text
        assert "■" not in text


def test_a_panel_that_is_gone_has_no_buttons_and_says_why():
    html, text, soup = read(replace(FULL, departure="The kernel was restarted."))
    assert soup.button is None
    for words in (html, text):
        assert "gone" in words
        assert STAMP in words
        assert "The kernel was restarted." in words
        assert "running since" not in words
        assert "8791" not in words
        assert "plot_rain(year=2015)" in words


def test_a_panel_has_a_limit():
    state = replace(
        FULL,
        tools=tuple(ToolLine(name=f"tool_{number}") for number in range(MAX_TOOLS + 5)),
        open_calls=tuple(replace(OPEN, number=number) for number in range(MAX_OPEN + 1)),
    )
    for text in read(state)[:2]:
        assert "and 5 tools more" in text
        assert "and 1 call more" in text
    assert len(read(state)[2].find_all("button")) == MAX_OPEN


def test_the_plain_text_leaves_out_nothing_but_pictures():
    """Each text of the state is in both, so that a frontend without HTML shows as much."""
    marked = PanelState(
        notebook="n0",
        kernel="k7",
        addresses=("n1",),
        clients=(ClientLine(name="n2"),),
        tools=(ToolLine(name="n3", listed_as="n4", calls=1, last="n5"),),
        missing=("n6",),
        open_calls=(OpenCall(number=7001, tool="n8", client="n9", doing="n10"),),
        ended_calls=(
            EndedCall(
                number=7011,
                at="n12",
                text="n13",
                client="n14",
                outcome="n15",
                thumbnail=Thumbnail("n16"),
            ),
        ),
    )
    numbers = {f"n{number}" for number in range(17)} - {"n7", "n11"} | {"7001", "7011"}
    for text in read(marked)[:2]:
        assert not {mark for mark in numbers if mark not in text}


def test_a_tool_whose_calls_are_not_counted_has_been_called_all_the_same():
    tool = ToolLine(name="top", last="11:42:07, done in 0.4 s")  # beyond 200 names
    for text in read(replace(FULL, tools=(tool,)))[:2]:
        assert "last: 11:42:07, done in 0.4 s" in text
        assert "not called yet" not in text


# -- the stop button -------------------------------------------------------------------------------


COMMAND = "mcp-notebook call --stop weather:12"


def test_a_button_says_which_call_of_which_kernel_it_stops():
    (button,) = BeautifulSoup(render_button("k7", 12, COMMAND), "html.parser").find_all("button")
    assert button.text == "stop"
    assert button["type"] == "button"  # it submits no form that it may be in
    assert (button["data-kernel"], button["data-call"]) == ("k7", "12")
    assert button["data-route"] == ROUTE
    assert button["data-command"] == COMMAND


def test_what_a_button_runs_is_the_same_for_all_and_holds_no_value():
    one, other = (
        BeautifulSoup(render_button(*values), "html.parser").button["onclick"]
        for values in (("k7", 12, COMMAND), ("'><script>alert(1)</script>", 3, "'x"))
    )
    assert one == other
    assert "k7" not in one
    assert "//" not in one  # a comment would end it: it is one line


def test_the_id_of_a_kernel_is_text():
    html = render_button("'><script>alert(1)</script>", 3, COMMAND)
    assert "<script" not in html


def test_the_command_can_be_pasted_into_a_terminal():
    assert format_command("weather", 12) == COMMAND
    assert format_command("my rain; rm *", 12) == "mcp-notebook call --stop 'my rain; rm *:12'"
