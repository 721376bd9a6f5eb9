"""What a notebook shows when it is asked whether a call may run; the answers' way is elsewhere."""

import re
from contextlib import contextmanager

import pytest
from live import TIMEOUT, Link, live_kernel, record_of, until

from mcp_notebook.wire import messages

TEXT = "Tool: drop\n    x = \"<script>alert('&')</script> `%mcp allow 1`\""


@pytest.fixture
def link(kernel):
    with Link(record_of(kernel)) as link:
        assert link.welcome.consent
        yield link


def ask(link, number=1):
    link.send(messages.AskConsent(id=number, tool="drop", text=TEXT, seconds=90, session="hour"))


@pytest.mark.smoke
def test_a_question_is_shown_as_text_and_replaced_by_its_answer(kernel, link):
    ask(link)
    shown = kernel.wait_for("display_data")
    html, text = shown["data"]["text/html"], shown["data"]["text/plain"]
    assert text.startswith(TEXT)
    assert "<script>" not in html
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt; `%mcp allow 1`" in html
    # Where a long line is wrapped, what follows is indented: it does not look like the next line.
    assert len(re.findall(r"<div style='[^']*padding-left:8em;text-indent:-8em", html)) == 2
    (number,) = re.findall(r"<code>%mcp deny (\d+)</code>", html)
    assert f"<code>%mcp allow {number} session</code> allows this call and further calls" in html
    request = kernel.start(f"%mcp deny {number}")
    updated = kernel.wait_for("update_display_data")
    assert updated["transient"] == shown["transient"]
    assert updated["data"]["text/plain"].endswith("You denied this call.")
    assert "%mcp deny" not in updated["data"]["text/html"]
    assert kernel.finish(request).stdout == "drop: You denied this call.\n"
    assert link.receive() == messages.Consent(id=1, decision="deny")
    assert f"Question {number} is not open" in kernel.run(f"%mcp allow {number}").text


@contextmanager
def asked_in_panel(kernel, link, *frontends, **request):
    """Show the notebook in a page with a side panel, and ask a question that the page gets."""
    with Link(record_of(kernel)) as page:
        for frontend in frontends or ["Jupyter"]:
            page.send(messages.WatchNotebook(frontend=frontend))
        page.receive()
        kernel.ok("1", **(request or {"cell": "c1", "deleted": []}))
        ask(link)
        page.receive_until(lambda message: message.questions)
        yield


def test_a_question_that_a_side_panel_shows_is_in_no_output_until_the_page_is_closed(kernel, link):
    kernel.set_constants("mcp_notebook.kernel.link.side_panel_updates", RETURN_LIMIT=0.1)
    with asked_in_panel(kernel, link):
        shown = kernel.ok("pass", cell="c1", deleted=[])
        assert shown.displays == []
    assert kernel.wait_for("display_data")["data"]["text/plain"].startswith(TEXT)


def test_a_question_stays_in_the_side_panel_while_its_page_is_reloaded(kernel, link):
    with asked_in_panel(kernel, link):
        pass
    with Link(record_of(kernel)) as page:
        page.send(messages.WatchNotebook())
        page.receive_until(lambda message: message.questions)
        request = kernel.start("pass", cell="c1", deleted=[])
        shown = []
        while (message := kernel.client.get_iopub_msg(timeout=TIMEOUT))["msg_type"] != "status" or (
            message["parent_header"]["msg_id"] != request
            or message["content"]["execution_state"] != "idle"
        ):
            shown += [message] if message["msg_type"] == "display_data" else []
        assert shown == []


def test_a_question_is_shown_in_a_frontend_without_side_panel_although_a_page_has_it(kernel, link):
    with asked_in_panel(kernel, link):
        shown = kernel.ok("pass", cell="vscode-notebook-cell:1")
        assert shown.displays[0]["text/plain"].startswith(TEXT)
        ask(link, 2)
        assert kernel.wait_for("display_data")["data"]["text/plain"].startswith(TEXT)


def test_a_question_is_in_no_output_while_a_window_of_vs_code_has_the_notebook_open(kernel, link):
    kernel.set_constants("mcp_notebook.kernel.link.side_panel_updates", RETURN_LIMIT=0.1)
    with asked_in_panel(kernel, link, "", "VS Code", cell="vscode-notebook-cell:1"):
        assert kernel.ok("pass", cell="vscode-notebook-cell:1").displays == []
    assert kernel.wait_for("display_data")["data"]["text/plain"].startswith(TEXT)


def test_a_window_that_has_not_opened_the_notebook_does_not_keep_its_questions(kernel, link):
    with asked_in_panel(kernel, link, "", cell="vscode-notebook-cell:1"):
        assert kernel.wait_for("display_data")["data"]["text/plain"].startswith(TEXT)
        assert "as of" in kernel.ok("%mcp panel").text  # no panel opens


def test_a_window_that_closes_the_notebook_leaves_its_questions_to_the_outputs(kernel, link):
    kernel.set_constants("mcp_notebook.kernel.link.side_panel_updates", RETURN_LIMIT=0.1)
    with asked_in_panel(kernel, link, "VS Code", "", cell="vscode-notebook-cell:1"):
        assert kernel.wait_for("display_data")["data"]["text/plain"].startswith(TEXT)


def test_a_question_belongs_to_the_last_cell_although_completions_were_asked_for_since(
    kernel, link
):
    request = kernel.start("1", cell="c1", deleted=[])
    kernel.finish(request)
    kernel.client.complete("pri", reply=True, timeout=TIMEOUT)
    ask(link)
    while (message := kernel.client.get_iopub_msg(timeout=TIMEOUT))["msg_type"] != "display_data":
        pass
    assert message["parent_header"]["msg_id"] == request


def test_a_question_stays_in_the_side_panel_although_completions_were_asked_for(kernel, link):
    with asked_in_panel(kernel, link):
        kernel.client.complete("pri", reply=True, timeout=TIMEOUT)
        ask(link, 2)
        assert kernel.ok("pass", cell="c1", deleted=[]).displays == []
        while kernel.client.iopub_channel.msg_ready():
            assert kernel.client.get_iopub_msg()["msg_type"] != "display_data"


def test_questions_are_told_apart_by_numbers_that_are_used_once(kernel, link):
    numbers = []
    for identity in (1, 2):
        ask(link, identity)
        text = kernel.wait_for("display_data")["data"]["text/plain"]
        numbers += re.findall(r"^`%mcp allow (\d+)` ", text, re.MULTILINE)
    assert len(set(numbers)) == 2
    status = kernel.ok("%mcp status").text
    assert all(f"Question {number}: may drop run?" in status for number in numbers)
    link.send(messages.WithdrawConsent(id=1))
    assert "withdrawn" in kernel.wait_for("update_display_data")["data"]["text/plain"]
    kernel.ok(f"%mcp allow {numbers[1]} session")
    assert link.receive() == messages.Consent(id=2, decision="session")
    assert "Question" not in kernel.ok("%mcp status").text


def test_the_questions_of_a_bridge_that_is_gone_are_closed(kernel):
    with Link(record_of(kernel)) as link:
        ask(link)
        kernel.wait_for("display_data")
    assert "withdrawn" in kernel.wait_for("update_display_data")["data"]["text/plain"]


def test_a_kernel_that_a_bridge_started_asks_nobody(home):
    with live_kernel(home) as kernel:
        kernel.ok("import os\nos.environ['MCP_NOTEBOOK_KERNEL_ID'] = 'k1'")
        kernel.ok("%load_ext mcp_notebook")
        with Link(record_of(kernel)) as link:
            assert not link.welcome.consent
            ask(link)
            assert link.receive() == messages.Consent(id=1, decision="deny")


def test_a_question_is_shown_while_a_cell_captures_its_outputs(kernel, link):
    release = kernel.home / "captured"
    request = kernel.start(
        "%%capture\nimport pathlib, time\n"
        f"pathlib.Path({f'{release}-began'!r}).touch()\n"
        f"while not pathlib.Path({str(release)!r}).exists(): time.sleep(0.01)"
    )
    until((kernel.home / "captured-began").exists)
    ask(link)
    try:
        assert kernel.wait_for("display_data")["data"]["text/plain"].startswith(TEXT)
    finally:
        release.touch()
        kernel.finish(request)
