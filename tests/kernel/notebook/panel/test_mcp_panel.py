"""`%mcp panel` and `%mcp status` in a real kernel, with and without a page that has the panel."""

import re
import time

import pytest
from live import Link, record_of, text_of, until

from mcp_notebook.kernel.notebook.panel.side_panel_state import find_server_address
from mcp_notebook.wire import messages

TOOLS = """
from mcp_notebook import Secret, mcp_tool

@mcp_tool(run="thread")
def beside(number: int = 1):
    "Runs beside cells."
    return f"beside {number}"

@mcp_tool
def between(pin: Secret[int] = 1):
    "Runs between cells."
    return f"pin {pin.get_secret_value()}"

@mcp_tool(run="thread")
def fail():
    "Fails."
    raise ValueError("<b>no</b>")

@mcp_tool(run="thread")
def dot():
    "A picture."
    import PIL.Image
    return PIL.Image.new("RGB", (300, 300), "red")

@mcp_tool
async def wait():
    "Waits until it is stopped."
    import asyncio
    await asyncio.sleep(600)
"""


@pytest.fixture
def notebook(kernel):
    """A notebook with tools."""
    kernel.ok(TOOLS)
    return kernel


@pytest.fixture
def link(notebook):
    with Link(record_of(notebook)) as link:
        yield link


@pytest.fixture
def page(notebook):
    """A page that has the side panel, as its server speaks for it; its first state has come."""
    with Link(record_of(notebook)) as page:
        page.send(messages.WatchNotebook())
        page.receive()
        yield page


def show(kernel, line="%mcp panel", **request):
    """Return the plain text that a line shows."""
    (data,) = kernel.ok(line, **request).displays
    return data["text/plain"]


@pytest.mark.smoke
def test_without_a_side_panel_the_notebook_is_shown_as_it_is(notebook, link):
    editor = messages.ClientCount(name="editor", version="1.2", number=2)
    link.send(messages.Clients(clients=[editor]))
    link.call("beside", number=7)
    link.call("fail")
    (data,) = notebook.ok("%mcp panel").displays
    text = data["text/plain"]
    for words in (
        "editor 1.2 (2 times)",
        "not served over HTTP",
        "beside(number=7), ",
        "unknown client: done in",
        "ValueError: <b>no</b>",
    ):
        assert words in text
    assert "ValueError: &lt;b&gt;no" in data["text/html"]


def test_where_a_page_has_the_side_panel_it_is_opened_and_nothing_is_shown(notebook, page):
    shown = notebook.ok("%mcp panel", cell="c1", deleted=[])
    assert (shown.displays, shown.text.strip()) == ([], "")
    page.receive_until(lambda message: isinstance(message, messages.ShowPanel))


def test_a_cell_of_another_frontend_shows_the_notebook_although_a_page_has_the_panel(
    notebook, page
):
    assert "Tools  " in show(notebook, cell="vscode-notebook-cell:1")


def test_a_page_that_is_closed_opens_nothing(notebook):
    with Link(record_of(notebook)) as page:
        page.send(messages.WatchNotebook())
        page.receive()
    until(lambda: notebook.ok("%mcp panel", cell="c1", deleted=[]).displays)


def test_status_and_log_agree_on_names_and_times(notebook, link, page):
    link.call("beside", number=7)
    state = page.receive_until(lambda message: message.ended_calls)[-1]
    status, log = (show(notebook, f"%mcp {verb}") for verb in ("status", "log"))
    assert show(notebook, "%mcp").partition("\n")[2] == status.partition("\n")[2]
    assert "not served over HTTP" in status
    assert state.ended_calls[0].client == "unknown client"
    for text in (status, log):
        assert "unknown client" in text
        assert "beside(number=7)" in text
    assert find_time(log, "beside(number=7)") in status


def find_time(text, call):
    """Return the second column of a call's line."""
    return next(line.split()[1] for line in text.splitlines() if call in line)


def test_a_call_that_runs_is_stopped_by_a_line_and_that_is_no_error(notebook, link):
    link.start("wait")
    line = until(lambda: [it for it in show(notebook).splitlines() if "wait()" in it])[0]
    assert "running since" in line
    number = re.search(r"(\d+) wait\(\)", line)[1]
    # In a later second, so that its arrival and its end are told apart below.
    later = int(time.time()) + 1
    until(lambda: time.time() >= later)
    assert f"%mcp stop {number}" in line
    assert notebook.ok(f"%mcp stop {number}").stdout == f"Stopping wait, call {number}.\n"
    assert "The user stopped the call in the notebook." in text_of(link.result())
    for line in ("%mcp status", "%mcp log"):
        shown = show(notebook, line)
        assert "stopped" in shown
        assert "by you, with `%mcp stop`" in shown
    assert notebook.ok("%mcp log --errors").stdout == "No call has failed.\n"
    assert "1 call (`%mcp log`): wait (1)" in show(notebook, "%mcp status")


def test_all_calls_are_stopped_at_once(notebook, link):
    link.start("wait")
    link.start("wait")
    until(lambda: show(notebook).count("running since") == 2)
    assert notebook.ok("%mcp stop").stdout.count("Stopping wait") == 2
    assert link.result().is_error
    assert link.result().is_error
    assert notebook.ok("%mcp stop").stdout == "No call waits or runs.\n"


def test_who_stopped_a_call_is_said_of_clients_and_commands(notebook, link):
    link.send(messages.Cancel(id=link.start("wait")))
    link.result()
    assert "by its client" in show(notebook)
    link.start("wait")
    with Link(record_of(notebook)) as other:
        (call,) = other.welcome.calls
        by = "you, in the side panel"
        other.send(messages.StopCall(id=1, number=call.number, reason="Enough.", by=by))
        assert link.result().is_error
    assert f"by {by}" in show(notebook, "%mcp log")


def test_neither_status_nor_log_has_secrets(notebook, link):
    assert text_of(link.call("between", pin=4711)) == "pin 4711"
    for line in ("%mcp status", "%mcp log"):
        (data,) = notebook.ok(line).displays
        assert "between" in data["text/plain"]
        assert not any("4711" in text for text in data.values())


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, None),
        ({"JPY_MCP_PATH": "/base/mcp-notebook"}, "`/base/mcp-notebook` on this Jupyter server"),
        (
            {
                "JPY_MCP_PATH": "/user/ada/mcp-notebook",
                "JUPYTERHUB_SERVICE_PREFIX": "/user/ada/",
                "JUPYTERHUB_PUBLIC_URL": "https://hub.example/user/ada/",
            },
            "`https://hub.example/user/ada/mcp-notebook`",
        ),
    ],
)
def test_the_address_on_the_jupyter_server_is_shown_as_far_as_it_is_known(env, words):
    assert find_server_address(env) == words
