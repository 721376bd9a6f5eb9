"""The button that stops a call, as HTML; `tests/browser` clicks on it."""

from bs4 import BeautifulSoup

from mcp_notebook.kernel.notebook.panel.stop_button import ROUTE, format_command, render_button

COMMAND = "mcp-notebook stop weather:12"


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
    assert format_command("my rain; rm *", 12) == "mcp-notebook stop 'my rain; rm *:12'"
