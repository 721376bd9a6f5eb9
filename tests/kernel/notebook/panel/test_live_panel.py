"""The live panel in a real kernel: what a frontend sees on iopub, also while a cell runs."""

import threading
from itertools import pairwise

import pytest
from live import TIMEOUT, Link, live_kernel, record_of, text_of

from mcp_notebook.kernel.calls.call_log import CallLog
from mcp_notebook.kernel.notebook.panel import live_panel
from mcp_notebook.kernel.notebook.panel.live_panel import UpdateRate
from mcp_notebook.kernel.notebook.panel.panel_source import find_server_address
from mcp_notebook.kernel.notebook.panel.panel_state import PanelState
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
    return "between"

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


def show(kernel):
    """Run `%mcp panel`, and return the message that shows it."""
    request = kernel.start("%mcp panel")
    shown = kernel.wait_for("display_data")
    kernel.finish(request)
    return shown


def follow(kernel, *words, kind="text/plain"):
    """Wait until the panel has these words, and return it."""
    while True:
        updated = kernel.wait_for("update_display_data")
        if all(word in updated["data"][kind] for word in words):
            return updated


def test_a_panel_shows_the_notebook_as_it_is(notebook):
    text = show(notebook)["data"]["text/plain"]
    assert "Clients: none connected" in text
    assert "between: not called yet" in text
    assert "not served over HTTP" in text


@pytest.mark.smoke
def test_a_call_is_seen_while_a_cell_runs(notebook, link):
    shown = show(notebook)
    with notebook.busy():
        assert text_of(link.call("beside", number=7)) == "beside 7"
        updated = follow(notebook, "beside(number=7) (unknown client): done in", ": beside 7")
        assert updated["transient"] == shown["transient"]
        link.start("between")
        follow(notebook, "between (unknown client): waiting for the end of the cell since")
    follow(notebook, "between() (unknown client): done in")
    assert text_of(link.receive()) == "between"


def test_a_call_that_runs_has_a_button_and_one_that_ended_has_none(notebook, link):
    show(notebook)
    number = link.start("wait")
    updated = follow(notebook, "wait (unknown client): running since")["data"]
    assert f"data-kernel='{record_of(notebook).id}'" in updated["text/html"]
    link.send(messages.Cancel(id=number))
    ended = follow(notebook, "wait() (unknown client): cancelled")["data"]
    assert "<button" not in ended["text/html"]
    assert "1 call, 1 error; last: " in ended["text/plain"]


def test_clients_are_shown_by_their_names_as_long_as_their_bridge_is_there(notebook):
    show(notebook)
    with Link(record_of(notebook)) as link, Link(record_of(notebook)) as other:
        editor = messages.ClientCount(name="editor", version="1.2", number=2)
        link.send(messages.Clients(clients=[editor]))
        follow(notebook, "Clients: editor 1.2 (2 times)")
        other.send(messages.Clients(clients=[editor, messages.ClientCount(name="chat")]))
        follow(notebook, "Clients: chat, editor 1.2 (4 times)")
    follow(notebook, "Clients: none connected")


def test_tools_are_shown_with_the_names_that_clients_see(notebook, link):
    show(notebook)
    listed = {"reason": "Another notebook has it, too.", "next_step": "Rename it."}
    name = messages.ListedName(tool="beside", name="weather_beside", **listed)
    link.send(messages.Clients(clients=[], names=[name]))
    follow(notebook, "weather_beside (here beside): not called yet", "between: not called yet")


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, None),
        ({"JPY_MCP_PATH": "/base/mcp"}, "`/base/mcp` on this Jupyter server"),
        (
            {
                "JPY_MCP_PATH": "/user/ada/mcp",
                "JUPYTERHUB_SERVICE_PREFIX": "/user/ada/",
                "JUPYTERHUB_PUBLIC_URL": "https://hub.example/user/ada/",
            },
            "`https://hub.example/user/ada/mcp`",
        ),
    ],
)
def test_the_address_on_the_jupyter_server_is_shown_as_far_as_it_is_known(env, words):
    assert find_server_address(env) == words


def test_what_calls_returned_is_seen_in_small_and_errors_as_text(notebook, link):
    show(notebook)
    link.call("dot")
    link.call("fail")
    html = follow(notebook, "dot() ", "fail() ", "1 error")["data"]["text/html"]
    assert "src='data:image/png;base64," in html
    assert "&lt;b&gt;no&lt;/b&gt;" in html
    assert len(html) < 20_000


def test_a_panel_has_no_secrets(notebook, link):
    show(notebook)
    link.call("between", pin=4711)
    updated = follow(notebook, "between(pin=")["data"]
    assert not any("4711" in text for text in updated.values())


def test_a_tool_that_comes_or_goes_is_seen_when_its_cell_has_ended(notebook):
    show(notebook)
    notebook.start("@mcp_tool\ndef new():\n    'New.'")
    follow(notebook, "new: not called yet")
    notebook.start("del new")
    follow(notebook, "Missing: new: `new` was deleted.")


def test_all_panels_are_one_output_that_is_sent_once(notebook, link):
    assert show(notebook)["transient"] == show(notebook)["transient"]
    link.call("beside", number=1)
    follow(notebook, "beside(number=1)")
    link.call("beside", number=2)
    before = 0
    while "beside(number=2)" not in notebook.wait_for("update_display_data")["data"]["text/plain"]:
        before += 1
    assert before <= 1  # of the arrival; two panels would have sent it twice


def test_nothing_is_sent_while_nothing_changes(notebook):
    show(notebook)
    notebook.ok("1")
    request = notebook.start("import time\ntime.sleep(0.5)\nprint('end')")
    kinds = []
    while not kinds or kinds[-1] != "stream":
        message = notebook.client.get_iopub_msg(timeout=TIMEOUT)
        kinds.append(message["msg_type"])
    assert "update_display_data" not in kinds
    notebook.finish(request)


def test_a_panel_is_gone_when_the_extension_is_unloaded_and_goes_on_when_it_is_reloaded(notebook):
    shown = show(notebook)
    with Link(record_of(notebook)) as link:
        link.call("beside", number=3)
        follow(notebook, "beside(number=3)")
    notebook.start("%reload_ext mcp_notebook")
    updated = follow(notebook, "(live)", "beside(number=3)", "between: not called yet")
    assert updated["transient"] == shown["transient"]
    with Link(record_of(notebook)) as link:
        link.call("beside", number=4)
        follow(notebook, "(live)", "beside(number=4)")
    notebook.start("%unload_ext mcp_notebook")
    updated = follow(notebook, "(gone)", "The notebook unloaded mcp_notebook.")
    assert updated["transient"] == shown["transient"]
    threads = notebook.ok("import threading\nprint([t.name for t in threading.enumerate()])")
    assert "mcp-notebook-panel" not in threads.stdout


@pytest.mark.parametrize("restart", [pytest.param(True, marks=pytest.mark.slow), False])
def test_the_panel_of_a_kernel_that_ends_says_so(home, restart):
    with live_kernel(home, env={"MCP_NOTEBOOK_PANEL": "1"}) as kernel:
        # The setting shows the panel.
        request = kernel.start("%load_ext mcp_notebook")
        assert "(live)" in kernel.wait_for("display_data")["data"]["text/plain"]
        kernel.finish(request)
        kernel.client.shutdown(restart=restart)
        follow(kernel, f"The kernel was {'restarted' if restart else 'shut down'}.")


def test_a_secret_that_a_tool_returns_is_not_in_the_panel(notebook, link):
    notebook.ok(
        "@mcp_tool(run='thread')\ndef tell(word: Secret[str]):\n"
        "    return f'said {word.get_secret_value()}'"
    )
    show(notebook)
    assert text_of(link.call("tell", word="hunter22")) == "said hunter22"
    updated = follow(notebook, "tell(word=", "said ")
    assert "hunter22" not in str(updated)


class SlowSource:
    """Reads as long as it is told to."""

    def __init__(self):
        self.log = CallLog()
        self.name = "weather"
        self.asked = threading.Event()
        self.answers = threading.Event()
        self.answers.set()

    def read(self):
        self.asked.set()
        assert self.answers.wait(TIMEOUT)
        return PanelState(notebook=self.name, kernel="k7")


class Output:
    """What a notebook shows."""

    def show(self, data):
        self.data = data

    update = show


def test_a_panel_that_ends_while_it_reads_says_that_it_is_gone_and_keeps_nobody_waiting(
    monkeypatch,
):
    monkeypatch.setattr(live_panel, "_END_LIMIT", 0.01)
    source, output = SlowSource(), Output()
    panel = live_panel.LivePanel(source, output)
    panel.show()
    (thread,) = [it for it in threading.enumerate() if it.name == "mcp-notebook-panel"]
    source.answers.clear()
    source.asked.clear()
    source.name = "rain"
    panel.note_change()
    assert source.asked.wait(TIMEOUT)
    closing = threading.Thread(target=panel.close, args=["The kernel was shut down."])
    closing.start()
    closing.join(TIMEOUT / 2)
    is_closed = not closing.is_alive()
    source.answers.set()
    thread.join(TIMEOUT)
    closing.join(TIMEOUT)
    assert is_closed
    assert "(gone)" in output.data["text/plain"]
    assert "The kernel was shut down." in output.data["text/plain"]


# -- the update rate -------------------------------------------------------------------------------


def run(seconds, *, every, rate=None, start=0.0):
    """Change something again and again; return when updates went out."""
    rate = rate or UpdateRate(start)
    updates, now = [], start
    while now < start + seconds:
        rate.note_change(now)
        if rate.wait(now) <= 0:
            rate.take_change()
            rate.note_update(now)
            updates.append(now)
        now += every
    return updates


def test_a_single_change_is_shown_at_once_and_a_short_call_as_one():
    rate = UpdateRate(0)
    assert not rate.has_change
    rate.note_change(100)
    assert rate.has_change
    assert rate.wait(100) == pytest.approx(live_panel.SETTLING)
    rate.note_change(100.04)  # the end of the call does not put it off
    assert rate.wait(100.06) <= 0
    rate.take_change()
    assert not rate.has_change


def test_a_burst_is_shown_a_few_times_a_second():
    updates = run(10, every=0.01)
    gaps = [later - earlier for earlier, later in pairwise(updates)]
    assert 25 <= len(updates) <= 34
    assert min(gaps) >= live_panel.SHORTEST - 1e-6


def test_a_kernel_that_is_called_for_a_day_sends_few_updates():
    updates = run(24 * 3600, every=0.5)
    assert len(updates) < live_panel.BURST + 3600 / live_panel.STEADY + 24 * 3600 / 30 + 50
    # The last hours: none closer than this.
    assert updates[-1] - updates[-2] >= live_panel.ASLEEP - 1


def test_a_cell_brings_the_panel_back_to_its_usual_pace():
    rate = UpdateRate(0)
    run(3 * 3600, every=1.0, rate=rate)
    now = 3 * 3600.0
    rate.note_use(now)
    updates = run(60, every=0.1, rate=rate, start=now)
    assert len(updates) >= 60 / live_panel.STEADY - 1


def test_after_a_quiet_time_a_burst_is_shown_again():
    rate = UpdateRate(0)
    run(1_000, every=0.1, rate=rate)
    updates = run(5, every=0.01, rate=rate, start=2_000.0)
    assert len(updates) >= 14
